/* Blocks of TiDB's rows as changes: of tuples, or runs of them that are read later. */
#include "block.h"
#include "tidb.h"

#include <stdlib.h>
#include <string.h>

/* A table whose rows are read. What is Python's stays with the items of the dict. */
typedef struct {
    Bytes prefix;
    PyObject *table, *python, *rows_block;
    int is_read; /* 0 for a table whose rows are left out */
    Rows rows;   /* without a layout if only `python` reads them */
    size_t next; /* number of its next change */
} Table;

typedef enum { NO_OP = -1, INSERT_OP, UPDATE_OP, DELETE_OP } Op;

static PyObject *OPS[3];

/* What is read of one block. */
typedef struct {
    const Block *block;
    PyObject *type;      /* RowChange or KvRun */
    PyObject *rows_type; /* Rows; may be NULL */
    PyObject *items;     /* of the dict of tables */
    Py_ssize_t table_count;
    Table *tables; /* in the order of the prefixes */
    Table *last;
    uint64_t commit, start;
    PyObject *commit_ts, *start_ts; /* of the last change, which those of its transaction share */
} Reading;

static int compare_tables(const void *left, const void *right)
{
    const Bytes *a = &((const Table *)left)->prefix, *b = &((const Table *)right)->prefix;
    Py_ssize_t a_size = a->end - a->at, b_size = b->end - b->at;
    int order = memcmp(a->at, b->at, (size_t)(a_size < b_size ? a_size : b_size));
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int get_table(Table *table, PyObject *prefix, PyObject *given)
{
    PyObject *layout;
    if (get_bytes(prefix, &table->prefix) < 0)
        return -1;
    table->is_read = given != Py_None;
    if (!table->is_read)
        return 0;
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "a table is a tuple, or None");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "OOOO", &layout, &table->table, &table->python, &table->rows_block))
        return -1;
    if (layout == Py_None)
        return 0;
    if (!Py_IS_TYPE(layout, &TidbLayoutType)) {
        PyErr_SetString(PyExc_TypeError, "a layout is a TidbLayout, or None");
        return -1;
    }
    if (open_rows(&table->rows, (TidbLayout *)layout) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void close_reading(Reading *reading)
{
    for (Py_ssize_t i = 0; reading->tables != NULL && i < reading->table_count; i++)
        close_rows(&reading->tables[i].rows);
    PyMem_Free(reading->tables);
    Py_XDECREF(reading->items);
    Py_XDECREF(reading->commit_ts);
    Py_XDECREF(reading->start_ts);
}

/* Open what reads (block, tables, type, and it may be Rows); -1 with an exception, and nothing to close. */
static int open_reading(Reading *reading, PyObject *arguments)
{
    static const char *const TEXTS[] = {"insert", "update", "delete"};
    PyObject *tables;
    *reading = (Reading){0};
    if (!PyArg_ParseTuple(arguments, "O!O!O|O", &BlockType, &reading->block, &PyDict_Type, &tables, &reading->type,
                          &reading->rows_type))
        return -1;
    for (int op = 0; op < 3; op++)
        if (OPS[op] == NULL && (OPS[op] = PyUnicode_InternFromString(TEXTS[op])) == NULL)
            return -1;
    reading->items = PyDict_Items(tables);
    reading->table_count = reading->items == NULL ? 0 : PyList_GET_SIZE(reading->items);
    reading->tables = PyMem_Calloc((size_t)reading->table_count + 1, sizeof *reading->tables);
    int failed = reading->items == NULL || reading->tables == NULL;
    if (reading->tables == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < reading->table_count && !failed; i++) {
        PyObject *item = PyList_GET_ITEM(reading->items, i);
        failed = get_table(&reading->tables[i], PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1)) < 0;
    }
    if (failed) {
        close_reading(reading);
        return -1;
    }
    qsort(reading->tables, (size_t)reading->table_count, sizeof *reading->tables, compare_tables);
    return 0;
}

/* Return the table of a change; NULL with an exception if it isn't given. */
static Table *table_of(Reading *reading, const Entry *entry)
{
    const uint8_t *key = key_of(reading->block->storage, entry);
    Table wanted = {.prefix = {key, key + (entry->key_bytes < TABLE_KEY_BYTES ? entry->key_bytes : TABLE_KEY_BYTES)}};
    if (reading->last == NULL || compare_tables(reading->last, &wanted)) {
        reading->last = bsearch(&wanted, reading->tables, (size_t)reading->table_count, sizeof wanted, compare_tables);
        if (reading->last == NULL)
            PyErr_SetString(PyExc_ValueError, "a change is of none of the tables");
    }
    return reading->last;
}

static Op op_of(const Entry *entry)
{
    if (entry->owner & 1)
        return entry->old_bytes ? UPDATE_OP : INSERT_OP;
    return entry->old_bytes ? DELETE_OP : NO_OP; /* a row inserted and deleted in the same transaction */
}

/* Make the timestamps those of the change. */
static int reach(Reading *reading, const Entry *entry)
{
    if (reading->commit_ts == NULL || reading->commit != entry->commit_ts) {
        reading->commit = entry->commit_ts;
        Py_XSETREF(reading->commit_ts, PyLong_FromUnsignedLongLong(entry->commit_ts));
    }
    if (reading->start_ts == NULL || reading->start != entry->start_ts) {
        reading->start = entry->start_ts;
        Py_XSETREF(reading->start_ts, PyLong_FromUnsignedLongLong(entry->start_ts));
    }
    return reading->commit_ts == NULL || reading->start_ts == NULL ? -1 : 0;
}

/* Return the row after the change, or before it. */
static PyObject *row_at(const Reading *reading, Table *table, const Entry *entry, int is_after)
{
    Change change = change_at(reading->block->storage, entry);
    return read_row(&table->rows, change.key, is_after ? change.value : change.old_value, table->python);
}

/* Return the change of a row; None if it is left out. */
static PyObject *read_change(Reading *reading, const Entry *entry)
{
    Table *table = table_of(reading, entry);
    Op op = op_of(entry);
    if (table == NULL)
        return NULL;
    if (!table->is_read || op == NO_OP)
        return Py_NewRef(Py_None);
    PyObject *before = op == INSERT_OP ? Py_NewRef(Py_None) : row_at(reading, table, entry, 0), *made = NULL;
    if (before == NULL)
        return NULL;
    PyObject *after = op == DELETE_OP ? Py_NewRef(Py_None) : row_at(reading, table, entry, 1);
    if (after != NULL && reach(reading, entry) == 0) {
        PyObject *arguments[] = {NULL, /* room that PY_VECTORCALL_ARGUMENTS_OFFSET grants */
                                 reading->commit_ts, reading->start_ts, table->table, OPS[op], before, after};
        made = PyObject_Vectorcall(reading->type, arguments + 1, 6 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    Py_DECREF(before);
    Py_XDECREF(after);
    return made;
}

PyObject *tidb_changes(PyObject *module, PyObject *arguments)
{
    Reading reading;
    if (open_reading(&reading, arguments) < 0)
        return NULL;
    PyObject *made = PyList_New(0);
    for (size_t i = 0; made != NULL && i < reading.block->count; i++) {
        PyObject *change = read_change(&reading, &reading.block->first[i]);
        if (change == NULL || PyList_Append(made, change) < 0)
            Py_CLEAR(made);
        Py_XDECREF(change);
    }
    close_reading(&reading);
    return made;
}

/* --- transactions -------------------------------------------------------------------------------------- */

/* Columns of transactions: their timestamps, and what each has: a tuple of one, or a list of more. */
typedef struct {
    PyObject *commit_ts, *start_ts, *contents;
    PyObject *rows_type; /* Rows, to be made of the runs of each; NULL for contents that stay as they are */
    size_t row_count;    /* of the last transaction */
} Transactions;

static int open_transactions(Transactions *all, PyObject *rows_type)
{
    *all = (Transactions){PyList_New(0), PyList_New(0), PyList_New(0), rows_type, 0};
    return all->commit_ts == NULL || all->start_ts == NULL || all->contents == NULL ? -1 : 0;
}

/* End the last transaction, if there is one. */
static int end_transaction(Transactions *all)
{
    Py_ssize_t last = PyList_GET_SIZE(all->contents) - 1;
    if (all->rows_type == NULL || last < 0)
        return 0;
    PyObject *count = PyLong_FromSize_t(all->row_count), *rows = NULL;
    PyObject *arguments[] = {PyList_GET_ITEM(all->contents, last), count};
    if (count != NULL)
        rows = PyObject_Vectorcall(all->rows_type, arguments, 2, NULL);
    Py_XDECREF(count);
    all->row_count = 0;
    return rows == NULL ? -1 : PyList_SetItem(all->contents, last, rows);
}

/* Return the columns, or NULL if it failed. */
static PyObject *close_transactions(Transactions *all, int failed)
{
    failed = failed || end_transaction(all) < 0;
    PyObject *made = failed ? NULL : PyTuple_Pack(3, all->commit_ts, all->start_ts, all->contents);
    Py_XDECREF(all->commit_ts);
    Py_XDECREF(all->start_ts);
    Py_XDECREF(all->contents);
    return made;
}

/* Begin a transaction of the reading's timestamps. */
static int add_transaction(Transactions *all, const Reading *reading, PyObject *first)
{
    if (end_transaction(all) < 0)
        return -1;
    PyObject *content = PyTuple_Pack(1, first);
    if (content != NULL)
        PyObject_GC_UnTrack(content); /* it contains nothing that the collector looks at */
    int failed = content == NULL || PyList_Append(all->contents, content) < 0 ||
                 PyList_Append(all->commit_ts, reading->commit_ts) < 0 ||
                 PyList_Append(all->start_ts, reading->start_ts) < 0;
    Py_XDECREF(content);
    return failed ? -1 : 0;
}

/* Add to the transaction of the reading's timestamps; takes over the reference. */
static int add_content(Transactions *all, const Reading *reading, PyObject *made, int is_new)
{
    Py_ssize_t last = PyList_GET_SIZE(all->contents) - 1;
    int failed = made == NULL;
    if (!failed && (is_new || last < 0))
        failed = add_transaction(all, reading, made);
    else if (!failed) {
        PyObject *content = PyList_GET_ITEM(all->contents, last);
        if (PyTuple_CheckExact(content)) {
            content = PySequence_List(content);
            failed = content == NULL || PyList_SetItem(all->contents, last, content) < 0;
        }
        failed = failed || PyList_Append(content, made) < 0;
    }
    Py_XDECREF(made);
    return failed ? -1 : 0;
}

PyObject *tidb_transactions(PyObject *module, PyObject *arguments)
{
    Reading reading;
    Transactions all;
    if (open_reading(&reading, arguments) < 0)
        return NULL;
    int failed = open_transactions(&all, NULL);
    for (size_t i = 0; i < reading.block->count && !failed; i++) {
        const Entry *entry = &reading.block->first[i];
        int is_new = reading.commit != entry->commit_ts || reading.start != entry->start_ts;
        PyObject *change = read_change(&reading, entry);
        if (change == Py_None)
            Py_DECREF(change);
        else
            failed = add_content(&all, &reading, change, is_new);
    }
    close_reading(&reading);
    return close_transactions(&all, failed);
}

/* --- runs ---------------------------------------------------------------------------------------------- */

/* Consecutive changes of one table by one operation. */
typedef struct {
    const Table *table;
    Op op;
    size_t start, stop;
    int is_new; /* the first of its transaction */
} KvRun;

static int add_run(Transactions *all, const Reading *reading, const KvRun *run)
{
    if (run->table == NULL)
        return 0;
    PyObject *start = PyLong_FromSize_t(run->start), *stop = PyLong_FromSize_t(run->stop), *made = NULL;
    if (start != NULL && stop != NULL) {
        const Table *table = run->table;
        PyObject *arguments[] = {NULL, reading->commit_ts, reading->start_ts, table->table, OPS[run->op],
                                 Py_None, table->rows_block, start, stop};
        made = PyObject_Vectorcall(reading->type, arguments + 1, 8 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    Py_XDECREF(start);
    Py_XDECREF(stop);
    int failed = add_content(all, reading, made, run->is_new);
    all->row_count += run->stop - run->start;
    return failed;
}

/* Return 1 for an update that changes no visible column, as where TiDB fills one that isn't public yet. */
static int is_fill(const Reading *reading, Table *table, const Entry *entry)
{
    Change change = change_at(reading->block->storage, entry);
    if (!may_have_other_columns(change.old_value, change.value))
        return 0;
    PyObject *before = row_at(reading, table, entry, 0);
    PyObject *after = before == NULL ? NULL : row_at(reading, table, entry, 1);
    int found = after == NULL ? -1 : PyObject_RichCompareBool(before, after, Py_EQ);
    Py_XDECREF(before);
    Py_XDECREF(after);
    return found;
}

PyObject *tidb_runs(PyObject *module, PyObject *arguments)
{
    Reading reading;
    Transactions all;
    KvRun run = {0};
    if (open_reading(&reading, arguments) < 0)
        return NULL;
    int failed = open_transactions(&all, reading.rows_type);
    for (size_t i = 0; i < reading.block->count && !failed; i++) {
        const Entry *entry = &reading.block->first[i];
        Table *table = table_of(&reading, entry);
        Op op = op_of(entry);
        if (table == NULL) {
            failed = 1;
            break;
        }
        size_t number = table->next++;
        int is_out = !table->is_read || op == NO_OP;
        if (!is_out && op == UPDATE_OP)
            is_out = is_fill(&reading, table, entry);
        if (is_out) {
            failed = is_out < 0;
            continue;
        }
        int is_new = reading.commit_ts == NULL || reading.commit != entry->commit_ts ||
                     reading.start != entry->start_ts;
        if (!is_new && run.table == table && run.op == op && run.stop == number) {
            run.stop++;
            continue;
        }
        failed = add_run(&all, &reading, &run) < 0 || reach(&reading, entry) < 0;
        run = (KvRun){table, op, number, number + 1, is_new};
    }
    failed = failed || add_run(&all, &reading, &run) < 0;
    close_reading(&reading);
    return close_transactions(&all, failed);
}
