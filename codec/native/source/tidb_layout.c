/* The description of where the columns of TiDB's rows are. */
#include "tidb.h"

#include <stdlib.h>
#include <string.h>

static int in_order(const void *one, const void *other)
{
    int64_t left = ((const ById *)one)->id, right = ((const ById *)other)->id;
    return (left > right) - (left < right);
}

static int is_input_of_tidb(const Column *column)
{
    return column->input >= TIDB_INT && column->input <= TIDB_JSON;
}

static int get_origin(Origin *origin, const Column *column, PyObject *given)
{
    PyObject *initial;
    long long id;
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "a column's origin is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "LiO", &id, &origin->role, &initial))
        return -1;
    if (!is_input_of_tidb(column) || origin->role < IN_VALUE || origin->role > REQUIRED ||
        !(initial == Py_None || initial == Py_Ellipsis || PyBytes_CheckExact(initial)) ||
        (origin->role == IN_HANDLE && column->input != TIDB_INT && column->input != TIDB_UINT)) {
        PyErr_SetString(PyExc_ValueError, "a column's origin is invalid");
        return -1;
    }
    origin->id = id;
    origin->part = -1;
    origin->initial = initial == Py_Ellipsis ? NULL : Py_NewRef(initial);
    return 0;
}

static int get_parts(TidbLayout *layout, PyObject *parts)
{
    Py_ssize_t count = layout->layout->count;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); i++) {
        Part *part = &layout->parts[i];
        PyObject *given = PyTuple_GET_ITEM(parts, i);
        if (!PyTuple_Check(given)) {
            PyErr_SetString(PyExc_TypeError, "a key's column is a tuple");
            return -1;
        }
        if (!PyArg_ParseTuple(given, "np", &part->column, &part->is_prefix))
            return -1;
        if (part->column < 0 || part->column >= count) {
            PyErr_SetString(PyExc_ValueError, "a key's column isn't one of the table");
            return -1;
        }
        layout->origins[part->column].part = i;
    }
    layout->part_count = PyTuple_GET_SIZE(parts);
    return 0;
}

static PyObject *new_layout(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *columns, *origins, *parts;
    if (keywords != NULL && PyDict_GET_SIZE(keywords))
        return PyErr_Format(PyExc_TypeError, "TidbLayout takes no keywords");
    int verifies;
    if (!PyArg_ParseTuple(arguments, "O!O!O!p:TidbLayout", &LayoutType, &columns, &PyTuple_Type, &origins,
                          &PyTuple_Type, &parts, &verifies))
        return NULL;
    size_t count = (size_t)((Layout *)columns)->count;
    if ((size_t)PyTuple_GET_SIZE(origins) != count)
        return PyErr_Format(PyExc_ValueError, "there is an origin for each column");
    TidbLayout *layout = (TidbLayout *)type->tp_alloc(type, 0);
    if (layout == NULL)
        return NULL;
    layout->layout = (Layout *)Py_NewRef(columns);
    layout->verifies = verifies;
    layout->origins = PyMem_Calloc(count + 1, sizeof *layout->origins);
    layout->by_id = PyMem_Calloc(count + 1, sizeof *layout->by_id);
    layout->parts = PyMem_Calloc((size_t)PyTuple_GET_SIZE(parts) + 1, sizeof *layout->parts);
    if (layout->origins == NULL || layout->by_id == NULL || layout->parts == NULL) {
        Py_DECREF(layout);
        return PyErr_NoMemory();
    }
    for (size_t i = 0; i < count; i++) {
        Origin *origin = &layout->origins[i];
        if (get_origin(origin, &layout->layout->columns[i], PyTuple_GET_ITEM(origins, i)) < 0) {
            Py_DECREF(layout);
            return NULL;
        }
        layout->by_id[i] = (ById){origin->id, (Py_ssize_t)i};
    }
    qsort(layout->by_id, count, sizeof *layout->by_id, in_order);
    if (get_parts(layout, parts) < 0) {
        Py_DECREF(layout);
        return NULL;
    }
    return (PyObject *)layout;
}

static void free_layout(PyObject *self)
{
    TidbLayout *layout = (TidbLayout *)self;
    for (Py_ssize_t i = 0; layout->origins != NULL && i < layout->layout->count; i++)
        Py_XDECREF(layout->origins[i].initial);
    PyMem_Free(layout->origins);
    PyMem_Free(layout->by_id);
    PyMem_Free(layout->parts);
    Py_XDECREF(layout->layout);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject TidbLayoutType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tidemill.codec.native._native.TidbLayout",
    .tp_doc = "Where the columns of a table's rows are in TiDB's keys and values, compiled once.",
    .tp_basicsize = sizeof(TidbLayout),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_layout,
    .tp_dealloc = free_layout,
};
