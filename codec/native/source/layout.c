/* The description of a table's columns. */
#include "value.h"

static int fits(const Column *column)
{
    int width = column->width;
    if (width != 0 && width != 1 && width != 2 && width != 4 && width != 8 && width != 16)
        return 0;
    if (column->size < 0)
        return 0;
    switch (column->input) {
    case FLOAT_BYTES:
        return width == 4;
    case DOUBLE_BYTES:
        return width == 8;
    case LITTLE_ENDIAN_INT:
    case BIG_ENDIAN_INT:
    case COUNTED:
        return column->size >= 1 && column->size <= 8;
    case FIXED:
        return column->size >= 0 && column->size <= 1024;
    case PACKED_DECIMAL:
    case TIDB_DECIMAL:
        return column->digits >= 1 && column->digits <= MAX_DIGITS && column->scale >= 0 &&
               column->scale <= column->digits;
    case PACKED_DATETIME:
    case PACKED_TIMESTAMP:
    case PACKED_TIME:
    case TIDB_MOMENT:
    case TIDB_DURATION:
        return column->scale >= 0 && column->scale <= 6;
    default:
        return 1;
    }
}

static int128 limit_of(int digits)
{
    int128 limit = 1;
    for (int left = digits < MAX_DIGITS ? digits : MAX_DIGITS; left > 0; left--)
        limit *= 10;
    return limit;
}

static int describe(Column *column, PyObject *description)
{
    int flags;
    PyObject *reader, *members, *unit;
    if (!PyTuple_Check(description)) {
        PyErr_SetString(PyExc_TypeError, "a column is described by a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(description, "iiiiiiiiOOO", &column->input, &column->output, &column->size,
                          &column->digits, &column->scale, &column->padding, &column->width, &flags, &reader,
                          &members, &unit))
        return -1;
    int needs_tuple = column->output == MEMBER, needs_function = column->output == MEMBERS;
    if (!fits(column) || (needs_tuple && !PyTuple_Check(members)) ||
        (needs_function && !PyCallable_Check(members))) {
        PyErr_SetString(PyExc_ValueError, "a column's description is invalid");
        return -1;
    }
    column->fixed = image_bytes(column);
    column->limit = limit_of(column->digits);
    column->nullable = flags & NULLABLE;
    column->hidden = flags & HIDDEN;
    column->reader = Py_NewRef(reader);
    column->members = Py_NewRef(members);
    column->unit = unit == Py_None ? NULL : Py_NewRef(unit);
    return 0;
}

static void set_steps(Layout *layout)
{
    Step *step = layout->steps;
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        const Column *column = &layout->columns[i];
        if (column->input == COUNTED)
            step++->length = column->fixed;
        else
            step->fixed += column->fixed;
    }
    layout->step_count = step - layout->steps + 1;
}

static PyObject *new_layout(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *descriptions;
    if (keywords != NULL && PyDict_GET_SIZE(keywords))
        return PyErr_Format(PyExc_TypeError, "Layout takes no keywords");
    if (!PyArg_ParseTuple(arguments, "O!:Layout", &PyTuple_Type, &descriptions))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(descriptions);
    Layout *layout = (Layout *)type->tp_alloc(type, 0);
    if (layout == NULL)
        return NULL;
    layout->columns = PyMem_Calloc((size_t)count + 1, sizeof(Column));
    layout->steps = PyMem_Calloc((size_t)count + 1, sizeof(Step));
    if (layout->columns == NULL || layout->steps == NULL) {
        Py_DECREF(layout);
        return PyErr_NoMemory();
    }
    layout->count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (describe(&layout->columns[i], PyTuple_GET_ITEM(descriptions, i)) < 0) {
            Py_DECREF(layout);
            return NULL;
        }
        layout->visible += !layout->columns[i].hidden;
    }
    set_steps(layout);
    return (PyObject *)layout;
}

static void free_layout(PyObject *self)
{
    Layout *layout = (Layout *)self;
    for (Py_ssize_t i = 0; layout->columns != NULL && i < layout->count; i++) {
        Py_XDECREF(layout->columns[i].reader);
        Py_XDECREF(layout->columns[i].members);
        Py_XDECREF(layout->columns[i].unit);
    }
    PyMem_Free(layout->columns);
    PyMem_Free(layout->steps);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject LayoutType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tidemill.codec.native._native.Layout",
    .tp_doc = "The columns of a table's rows, compiled once.",
    .tp_basicsize = sizeof(Layout),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_layout,
    .tp_dealloc = free_layout,
};
