/* Rows of TiDB as tuples. */
#include "tidb.h"

int get_bytes(PyObject *bytes, Bytes *into)
{
    if (!PyBytes_CheckExact(bytes)) {
        PyErr_SetString(PyExc_TypeError, "keys and values are bytes");
        return -1;
    }
    into->at = (const uint8_t *)PyBytes_AS_STRING(bytes);
    into->end = into->at + PyBytes_GET_SIZE(bytes);
    return 0;
}

static PyObject *object_of_bytes(Bytes bytes)
{
    return PyBytes_FromStringAndSize((const char *)bytes.at, bytes.end - bytes.at);
}

/* Return the row of the cells, or NULL with an exception. */
static PyObject *row_of(const Rows *rows)
{
    const Layout *layout = rows->layout->layout;
    PyObject *row = PyTuple_New(layout->visible);
    Py_ssize_t place = 0;
    Value value;
    for (Py_ssize_t i = 0; row != NULL && i < layout->count; i++) {
        const Column *column = &layout->columns[i];
        if (column->hidden)
            continue;
        const Cell *cell = &rows->cells[i];
        PyObject *made = cell->form == NOTHING ? Py_NewRef(Py_None)
                                               : object_of(column, &value, read_cell(column, cell, &value));
        if (made == NULL)
            Py_CLEAR(row);
        else
            PyTuple_SET_ITEM(row, place++, made);
    }
    if (row != NULL)
        PyObject_GC_UnTrack(row); /* its values contain nothing: the collector needn't look at it */
    return row;
}

PyObject *read_row(Rows *rows, Bytes key, Bytes value, PyObject *python)
{
    if (rows->layout != NULL && find_cells(rows, key, value) == 0) {
        PyObject *row = row_of(rows);
        if (row != NULL || !PyErr_ExceptionMatches(PyExc_Exception) ||
            PyErr_ExceptionMatches(PyExc_MemoryError))
            return row;
        PyErr_Clear();
    }
    PyObject *arguments[] = {object_of_bytes(key), object_of_bytes(value)}, *row = NULL;
    if (arguments[0] != NULL && arguments[1] != NULL)
        row = PyObject_Vectorcall(python, arguments, 2, NULL);
    Py_XDECREF(arguments[0]);
    Py_XDECREF(arguments[1]);
    return row;
}

PyObject *tidb_rows(PyObject *module, PyObject *arguments)
{
    TidbLayout *layout;
    PyObject *given, *python;
    if (!PyArg_ParseTuple(arguments, "O!OO", &TidbLayoutType, &layout, &given, &python))
        return NULL;
    PyObject *pairs = PySequence_Tuple(given); /* which nobody changes meanwhile */
    PyObject *made = pairs == NULL ? NULL : PyList_New(0);
    Rows rows = {0};
    if (made != NULL && open_rows(&rows, layout) < 0) {
        Py_CLEAR(made);
        PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; made != NULL && i < PyTuple_GET_SIZE(pairs); i++) {
        PyObject *pair = PyTuple_GET_ITEM(pairs, i), *row = NULL;
        Bytes key, value;
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2)
            PyErr_SetString(PyExc_TypeError, "a row is a tuple of its key and its value");
        else if (get_bytes(PyTuple_GET_ITEM(pair, 0), &key) == 0 && get_bytes(PyTuple_GET_ITEM(pair, 1), &value) == 0)
            row = read_row(&rows, key, value, python);
        if (row == NULL || PyList_Append(made, row) < 0)
            Py_CLEAR(made);
        Py_XDECREF(row);
    }
    close_rows(&rows);
    Py_XDECREF(pairs);
    return made;
}
