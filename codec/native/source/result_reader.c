/* Inserts of a table's rows in the binary protocol: packets, each with a header of 4 bytes. A row begins with a
   byte of 0 and a bit for each NULL. */
#include "reader.h"
#include "value.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Maker maker;
    PyObject *of_long_rows; /* the reader in Python: it reads on from a row of more than one packet */
} ResultReader;

const uint8_t *end_of_packet(const uint8_t **at, const uint8_t *end)
{
    if (end - *at < HEADER_BYTES)
        return NULL;
    Py_ssize_t size = (*at)[0] | (*at)[1] << 8 | (*at)[2] << 16;
    if (end - *at - HEADER_BYTES < size)
        return NULL;
    *at += HEADER_BYTES;
    return *at + size;
}

const uint8_t *nulls_of_row(const Layout *layout, const uint8_t **at, const uint8_t *end)
{
    Py_ssize_t size = 1 + (layout->count + 2 + 7) / 8; /* the first byte is 0, two bits aren't used */
    const uint8_t *row = *at;
    if (end - row < size || *row)
        return NULL;
    *at += size;
    return row + 1;
}

static PyObject *read_row(const Layout *layout, Source *source, const uint8_t *stop)
{
    const uint8_t *row_start = source->at, *nulls = nulls_of_row(layout, &source->at, stop);
    if (nulls == NULL)
        return unreadable(0, row_start - source->start);
    PyObject *row = PyTuple_New(layout->count);
    if (row == NULL)
        return NULL;
    Value value;
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        const Column *column = &layout->columns[i];
        const uint8_t *at = source->at;
        PyObject *made;
        if (is_null_in_row(nulls, i))
            made = Py_NewRef(Py_None);
        else {
            Outcome outcome = read_sent_value(column, &source->at, stop, &value);
            made = outcome == CUT ? unreadable(i, at - source->start) : object_of(column, &value, outcome);
        }
        if (made == NULL) {
            Py_DECREF(row);
            return NULL;
        }
        PyTuple_SET_ITEM(row, i, made);
    }
    PyObject_GC_UnTrack(row); /* its values contain nothing: the collector needn't look at it */
    return row;
}

static int read_on(ResultReader *reader, PyObject *changes, Source *source, PyObject *const *arguments)
{
    PyObject *rest = PyObject_CallFunction(reader->of_long_rows, "OnOOO", arguments[0],
                                           source->at - source->start, arguments[2], arguments[3],
                                           arguments[4]);
    if (rest == NULL)
        return -1;
    Py_ssize_t count = PyList_GET_SIZE(changes);
    int failed = PyList_SetSlice(changes, count, count, rest);
    Py_DECREF(rest);
    source->at = source->end;
    return failed;
}

static PyObject *call_result_reader(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    ResultReader *reader = (ResultReader *)self;
    Source source;
    if (names != NULL && PyTuple_GET_SIZE(names))
        return PyErr_Format(PyExc_TypeError, "a ResultReader takes no keywords");
    if (get_source(&source, arguments, PyVectorcall_NARGS(flags)) < 0)
        return NULL;
    PyObject *changes = PyList_New(0);
    while (changes != NULL && source.at < source.end) {
        const uint8_t *packet = source.at, *stop = end_of_packet(&source.at, source.end);
        int failed;
        if (stop != NULL && stop - source.at == LONGEST_PAYLOAD) {
            source.at = packet;
            failed = read_on(reader, changes, &source, arguments);
        } else {
            PyObject *row = stop == NULL ? unreadable(0, packet - source.start)
                                         : read_row(reader->maker.layout, &source, stop);
            if (row != NULL && source.at != stop) {
                Py_CLEAR(row);
                unreadable(reader->maker.layout->count, source.at - source.start);
            }
            failed = row == NULL || append_change(&reader->maker, &source, changes, NULL, row) < 0;
            Py_XDECREF(row);
        }
        if (failed)
            Py_CLEAR(changes);
    }
    return changes;
}

static PyObject *new_result_reader(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *layout, *change, *table, *of_long_rows;
    if (keywords != NULL && PyDict_GET_SIZE(keywords))
        return PyErr_Format(PyExc_TypeError, "ResultReader takes no keywords");
    if (!PyArg_ParseTuple(arguments, "O!OOO:ResultReader", &LayoutType, &layout, &change, &table,
                          &of_long_rows))
        return NULL;
    ResultReader *reader = (ResultReader *)type->tp_alloc(type, 0);
    if (reader == NULL)
        return NULL;
    reader->call = call_result_reader;
    reader->of_long_rows = Py_NewRef(of_long_rows);
    reader->maker = (Maker){(Layout *)Py_NewRef(layout), Py_NewRef(change), Py_NewRef(table),
                            PyUnicode_InternFromString("insert")};
    if (reader->maker.op == NULL)
        Py_CLEAR(reader);
    return (PyObject *)reader;
}

static void free_result_reader(PyObject *self)
{
    ResultReader *reader = (ResultReader *)self;
    Py_XDECREF(reader->maker.layout);
    Py_XDECREF(reader->maker.change);
    Py_XDECREF(reader->maker.table);
    Py_XDECREF(reader->maker.op);
    Py_XDECREF(reader->of_long_rows);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef result_reader_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ResultReader, call), READONLY, NULL},
    {NULL},
};

PyTypeObject ResultReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tidemill.codec.native._native.ResultReader",
    .tp_doc = "Maps (packets, start and end of its rows, commit ts, start ts) to the inserts of the rows.",
    .tp_basicsize = sizeof(ResultReader),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = new_result_reader,
    .tp_dealloc = free_result_reader,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(ResultReader, call),
    .tp_members = result_reader_members,
};
