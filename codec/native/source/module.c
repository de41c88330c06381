/* The extension module: native twins of the decoders that are written in Python. */
#include "binlog_transactions.h"
#include "block.h"
#include "builder.h"
#include "change_data.h"
#include "columns.h"
#include "crc32.h"
#include "event_transactions.h"
#include "items.h"
#include "json_texts.h"
#include "packets.h"
#include "prewrites.h"
#include "reader.h"
#include "row_texts.h"
#include "tidb.h"
#include "time_texts.h"

static int add_names(PyObject *module)
{
#define ADD(name)                                                                                        \
    if (PyModule_AddIntConstant(module, #name, name) < 0)                                                \
        return -1;
#define ADD_OUTPUT(name)                                                                                 \
    if (PyModule_AddIntConstant(module, "AS_" #name, name) < 0)                                          \
        return -1;
    INPUTS(ADD)
    OUTPUTS(ADD_OUTPUT)
    ROLES(ADD)
    ADD(NULLABLE)
    ADD(HIDDEN)
    ADD(MAX_DIGITS)
    return 0;
}

static int load(PyObject *module)
{
    PyTypeObject *types[] = {&LayoutType, &ImageReaderType, &ResultReaderType, &TidbLayoutType,
                             &BlockType, &BlockBuilderType, &RegionRowsType, &PrewriteTableType};
    load_crc32();
    if (load_datetime() < 0 || load_row_texts() < 0 || PyType_Ready(&BufferType) < 0 || add_names(module) < 0)
        return -1;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(module, types[i]) < 0)
            return -1;
    return 0;
}

static PyMethodDef functions[] = {
    {"merge_blocks", (PyCFunction)(void (*)(void))merge_blocks, METH_FASTCALL, "Merge blocks."},
    {"block_from_bytes", block_from_bytes, METH_O, "Read a block as it is kept on disk."},
    {"use_change", use_change, METH_O, "Set the type of a single change."},
    {"use_items", use_items, METH_VARARGS, "Set the types of items and rows."},
    {"whole_items", whole_items, METH_VARARGS, "Find the whole transactions that items begin with."},
    {"counted_items", counted_items, METH_O, "Count the changes of transactions by table and operation."},
    {"binlog_transactions", binlog_transactions, METH_VARARGS, "Read whole transactions of a binlog."},
    {"change_data", change_data, METH_O, "Read a message of TiKV's change feed."},
    {"image_columns", image_columns, METH_VARARGS, "Read row images as the buffers of Arrow columns."},
    {"image_starts", image_starts, METH_VARARGS, "Find where each row image begins."},
    {"event_changes", event_changes, METH_VARARGS, "Read the changes of rows events."},
    {"event_transactions", event_transactions, METH_VARARGS, "Read transactions of one rows event each."},
    {"event_counts", event_counts, METH_VARARGS, "Count the changes of rows events."},
    {"count_rows", count_rows, METH_O, "Count rows of a result."},
    {"result_columns", result_columns, METH_VARARGS, "Read rows of a result as Arrow columns' buffers."},
    {"whole_payloads", whole_payloads, METH_O, "Cut bytes into payloads of packets."},
    {"whole_rows", whole_rows, METH_VARARGS, "Find the whole rows of a result that is being received."},
    {"row_starts", row_starts, METH_O, "Find where each row of a result begins."},
    {"tidb_rows", tidb_rows, METH_VARARGS, "Read rows of TiDB as tuples."},
    {"tidb_changes", tidb_changes, METH_VARARGS, "Read a block of changes of TiDB's rows."},
    {"tidb_transactions", tidb_transactions, METH_VARARGS, "Read a block as transactions of changes."},
    {"tidb_runs", tidb_runs, METH_VARARGS, "Find the transactions and runs of a block."},
    {"json_texts", json_texts, METH_VARARGS, "Write rows as JSON objects, from Arrow columns' buffers."},
    {"row_texts", row_texts, METH_VARARGS, "Join the texts of rows."},
    {"time_texts", time_texts, METH_VARARGS, "Write times as text, from an Arrow column's buffers."},
    {"pack_changes", pack_changes, METH_O, "Join the bytes of each change of blocks, and all of them."},
    {"tidb_packed_columns", tidb_packed_columns, METH_VARARGS,
     "Read rows of packed changes as Arrow columns' buffers."},
    {"tidb_columns", tidb_columns, METH_VARARGS, "Read rows of blocks as Arrow columns' buffers."},
    {NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, load},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}, /* objects are kept */
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "Native twins of the decoders that are written in Python.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
