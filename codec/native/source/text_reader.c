/* Inserts of a table's rows in the text protocol: packets, each with a header of 4 bytes. A value has its
   length before it, in 1 byte below 251 or in more. */
#include "reader.h"
#include "value.h"

#include <structmember.h>

enum { NULL_VALUE = 0xFB };

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Maker maker;
    PyObject *of_long_rows; /* the reader in Python: it reads on from a row of more than one packet */
} TextReader;

Outcome next_printed_value(const uint8_t **at, const uint8_t *end, Value *value)
{
    if (*at >= end)
        return CUT;
    uint64_t size = *(*at)++;
    value->stored = NULL;
    if (size == NULL_VALUE)
        return REGULAR;
    if (size > NULL_VALUE) {
        int width = size == 0xFC ? 2 : size == 0xFD ? 3 : size == 0xFE ? 8 : 0;
        if (!width || end - *at < width)
            return CUT;
        size = 0;
        for (int i = width; i--;)
            size = size << 8 | (*at)[i];
        *at += width;
    }
    if ((uint64_t)(end - *at) < size)
        return CUT;
    value->stored = *at;
    value->size = (Py_ssize_t)size;
    *at += size;
    return REGULAR;
}

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

static PyObject *read_row(const Layout *layout, Source *source, const uint8_t *stop, int is_point)
{
    PyObject *row = PyTuple_New(layout->count);
    if (row == NULL)
        return NULL;
    Value value;
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        const Column *column = &layout->columns[i];
        const uint8_t *at = source->at;
        if (next_printed_value(&source->at, stop, &value) == CUT) {
            Py_DECREF(row);
            return unreadable(i, at - source->start);
        }
        PyObject *made;
        if (value.stored == NULL)
            made = Py_NewRef(Py_None);
        else if (column->input == PRINTED_DOUBLE && !is_point)
            made = object_of(column, &value, IRREGULAR);
        else
            made = object_of(column, &value, read_printed_value(column, &value));
        if (made == NULL) {
            Py_DECREF(row);
            return NULL;
        }
        PyTuple_SET_ITEM(row, i, made);
    }
    PyObject_GC_UnTrack(row); /* its values contain nothing: the collector needn't look at it */
    return row;
}

static int read_on(TextReader *reader, PyObject *changes, Source *source, PyObject *const *arguments)
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

static PyObject *call_text_reader(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    TextReader *reader = (TextReader *)self;
    Source source;
    if (names != NULL && PyTuple_GET_SIZE(names))
        return PyErr_Format(PyExc_TypeError, "a TextReader takes no keywords");
    if (get_source(&source, arguments, PyVectorcall_NARGS(flags)) < 0)
        return NULL;
    int is_point = has_point();
    PyObject *changes = PyList_New(0);
    while (changes != NULL && source.at < source.end) {
        const uint8_t *packet = source.at, *stop = end_of_packet(&source.at, source.end);
        int failed;
        if (stop != NULL && stop - source.at == LONGEST_PAYLOAD) {
            source.at = packet;
            failed = read_on(reader, changes, &source, arguments);
        } else {
            PyObject *row = stop == NULL ? unreadable(0, packet - source.start)
                                         : read_row(reader->maker.layout, &source, stop, is_point);
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

static PyObject *new_text_reader(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *layout, *change, *table, *of_long_rows;
    if (keywords != NULL && PyDict_GET_SIZE(keywords))
        return PyErr_Format(PyExc_TypeError, "TextReader takes no keywords");
    if (!PyArg_ParseTuple(arguments, "O!OOO:TextReader", &LayoutType, &layout, &change, &table,
                          &of_long_rows))
        return NULL;
    TextReader *reader = (TextReader *)type->tp_alloc(type, 0);
    if (reader == NULL)
        return NULL;
    reader->call = call_text_reader;
    reader->of_long_rows = Py_NewRef(of_long_rows);
    reader->maker = (Maker){(Layout *)Py_NewRef(layout), Py_NewRef(change), Py_NewRef(table),
                            PyUnicode_InternFromString("insert")};
    if (reader->maker.op == NULL)
        Py_CLEAR(reader);
    return (PyObject *)reader;
}

static void free_text_reader(PyObject *self)
{
    TextReader *reader = (TextReader *)self;
    Py_XDECREF(reader->maker.layout);
    Py_XDECREF(reader->maker.change);
    Py_XDECREF(reader->maker.table);
    Py_XDECREF(reader->maker.op);
    Py_XDECREF(reader->of_long_rows);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef text_reader_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TextReader, call), READONLY, NULL},
    {NULL},
};

PyTypeObject TextReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tidemill.codec.native._native.TextReader",
    .tp_doc = "Maps (packets, start and end of its rows, commit ts, start ts) to the inserts of the rows.",
    .tp_basicsize = sizeof(TextReader),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = new_text_reader,
    .tp_dealloc = free_text_reader,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(TextReader, call),
    .tp_members = text_reader_members,
};
