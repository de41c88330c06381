/* Rows of TiDB as tuples, and as changes. */
#include "tidb.h"

static Bytes bytes_of(PyObject *bytes)
{
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(bytes);
    return (Bytes){at, at + PyBytes_GET_SIZE(bytes)};
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

/* Read a row; `python` reads one that isn't regular, or says what is wrong with it. */
static PyObject *read_row(Rows *rows, PyObject *key, PyObject *value, PyObject *python)
{
    if (PyBytes_CheckExact(key) && PyBytes_CheckExact(value) &&
        find_cells(rows, bytes_of(key), bytes_of(value)) == 0) {
        PyObject *row = row_of(rows);
        if (row != NULL || !PyErr_ExceptionMatches(PyExc_Exception) ||
            PyErr_ExceptionMatches(PyExc_MemoryError))
            return row;
        PyErr_Clear();
    }
    return PyObject_CallFunctionObjArgs(python, key, value, NULL);
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
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2)
            PyErr_SetString(PyExc_TypeError, "a row is a tuple of its key and its value");
        else
            row = read_row(&rows, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1), python);
        if (row == NULL || PyList_Append(made, row) < 0)
            Py_CLEAR(made);
        Py_XDECREF(row);
    }
    close_rows(&rows);
    Py_XDECREF(pairs);
    return made;
}

/* --- changes ------------------------------------------------------------------------------------------- */

static PyObject *COMMIT_TS, *START_TS, *OP, *KEY, *VALUE, *OLD_VALUE, *INSERT, *UPDATE, *DELETE_;

static int intern_names(void)
{
    const struct {
        PyObject **name;
        const char *text;
    } names[] = {{&COMMIT_TS, "commit_ts"}, {&START_TS, "start_ts"}, {&OP, "op"},
                 {&KEY, "key"},             {&VALUE, "value"},       {&OLD_VALUE, "old_value"},
                 {&INSERT, "insert"},       {&UPDATE, "update"},     {&DELETE_, "delete"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (*names[i].name == NULL && (*names[i].name = PyUnicode_InternFromString(names[i].text)) == NULL)
            return -1;
    return 0;
}

typedef struct {
    Rows rows;
    PyObject *table, *type, *python;
} Changes;

static PyObject *new_change(const Changes *changes, PyObject *raw, PyObject *op, PyObject *before,
                            PyObject *after)
{
    PyObject *commit_ts = PyObject_GetAttr(raw, COMMIT_TS), *start_ts = PyObject_GetAttr(raw, START_TS);
    PyObject *made = NULL;
    if (commit_ts != NULL && start_ts != NULL) {
        PyObject *arguments[] = {NULL, /* room that PY_VECTORCALL_ARGUMENTS_OFFSET grants */
                                 commit_ts, start_ts, changes->table, op, before, after};
        made = PyObject_Vectorcall(changes->type, arguments + 1, 6 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    Py_XDECREF(commit_ts);
    Py_XDECREF(start_ts);
    return made;
}

/* Return the change of a row; None for a row inserted and deleted in the same transaction. */
static PyObject *read_change(Changes *changes, PyObject *raw)
{
    PyObject *key = PyObject_GetAttr(raw, KEY), *value = PyObject_GetAttr(raw, VALUE);
    PyObject *old_value = PyObject_GetAttr(raw, OLD_VALUE), *op = PyObject_GetAttr(raw, OP);
    PyObject *before = NULL, *after = NULL, *made = NULL;
    int has_before = old_value == NULL ? -1 : PyObject_IsTrue(old_value);
    int has_after = op == NULL ? -1 : PyObject_IsTrue(op); /* PUT is 1, DELETE is 0 */
    if (key == NULL || value == NULL || has_before < 0 || has_after < 0)
        goto end;
    if (!has_before && !has_after) {
        made = Py_NewRef(Py_None);
        goto end;
    }
    before = has_before ? read_row(&changes->rows, key, old_value, changes->python) : Py_NewRef(Py_None);
    if (before == NULL)
        goto end;
    after = has_after ? read_row(&changes->rows, key, value, changes->python) : Py_NewRef(Py_None);
    if (after != NULL)
        made = new_change(changes, raw, !has_before ? INSERT : has_after ? UPDATE : DELETE_, before, after);
end:
    Py_XDECREF(key);
    Py_XDECREF(value);
    Py_XDECREF(old_value);
    Py_XDECREF(op);
    Py_XDECREF(before);
    Py_XDECREF(after);
    return made;
}

PyObject *tidb_changes(PyObject *module, PyObject *arguments)
{
    TidbLayout *layout;
    PyObject *given;
    Changes changes = {0};
    if (!PyArg_ParseTuple(arguments, "O!OOOO", &TidbLayoutType, &layout, &given, &changes.table,
                          &changes.type, &changes.python) ||
        intern_names() < 0)
        return NULL;
    PyObject *raws = PySequence_Tuple(given);
    PyObject *made = raws == NULL ? NULL : PyList_New(0);
    if (made != NULL && open_rows(&changes.rows, layout) < 0) {
        Py_CLEAR(made);
        PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; made != NULL && i < PyTuple_GET_SIZE(raws); i++) {
        PyObject *change = read_change(&changes, PyTuple_GET_ITEM(raws, i));
        if (change == NULL || PyList_Append(made, change) < 0)
            Py_CLEAR(made);
        Py_XDECREF(change);
    }
    close_rows(&changes.rows);
    Py_XDECREF(raws);
    return made;
}
