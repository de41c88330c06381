/* Rows of TiDB as Arrow columns. Only regular values are read here: for any other the function raises
   ValueError, and the rows are to be read one by one. */
#include "builder.h"
#include "tidb.h"

#include <stdlib.h>

typedef struct {
    Bytes key, value; /* the latter NULL for a row of NULLs */
} Pair;

static int append_row(const Rows *rows, Builder *builders, Py_ssize_t *column)
{
    const Layout *layout = rows->layout->layout;
    Value value;
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        const Cell *cell = &rows->cells[i];
        if (layout->columns[i].hidden)
            continue;
        *column = i;
        int failed = cell->form == NOTHING
                         ? append_null(&builders[i])
                         : append_value(&builders[i], &value, read_cell(&layout->columns[i], cell, &value));
        if (failed)
            return -1;
    }
    return 0;
}

/* Return the number of rows that could be read. */
static Py_ssize_t read_pairs(const TidbLayout *layout, const Pair *pairs, Py_ssize_t count, Builder *builders,
                             Py_ssize_t *column)
{
    Rows rows;
    Py_ssize_t row = open_rows(&rows, layout) < 0 ? count : 0;
    int failed = row == count && count;
    for (; row < count && !failed; row++) {
        if (pairs[row].value.at == NULL) {
            for (Py_ssize_t i = 0; i < layout->layout->count && !failed; i++)
                failed = append_null(&builders[i]) < 0;
        } else
            failed = find_cells(&rows, pairs[row].key, pairs[row].value) < 0 ||
                     append_row(&rows, builders, column) < 0;
    }
    close_rows(&rows);
    return failed ? row - 1 : row;
}

/* Return the columns of the pairs, which are freed. */
static PyObject *columns_of(const TidbLayout *layout, Pair *pairs, Py_ssize_t count)
{
    Py_ssize_t read = 0, column = 0;
    Builder *builders;
    Py_BEGIN_ALLOW_THREADS
    builders = new_builders(layout->layout, count);
    if (builders != NULL)
        read = read_pairs(layout, pairs, count, builders, &column);
    Py_END_ALLOW_THREADS
    free(pairs);
    if (builders == NULL)
        return PyErr_NoMemory();
    if (read == count)
        return arrays_of(layout->layout, builders);
    free_builders(layout->layout, builders);
    return PyErr_Format(PyExc_ValueError, "column %zd of row %zd can't be read", column, read);
}

/* --- packed changes ------------------------------------------------------------------------------------ */

/* Return the pairs of packed changes; NULL with an exception. `has` is 0 for a change without such a row. */
static Pair *unpacked(Bytes data, const int32_t *ends, Bytes has, int is_after)
{
    Py_ssize_t count = has.end - has.at;
    Pair *pairs = calloc((size_t)count + 1, sizeof *pairs);
    if (pairs == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t start = ends[i], end = ends[i + 1];
        Change change;
        if (start < 0 || start > end || end > data.end - data.at ||
            unpack_change((Bytes){data.at + start, data.at + end}, &change) < 0) {
            free(pairs);
            PyErr_Format(PyExc_ValueError, "change %zd isn't whole", i);
            return NULL;
        }
        pairs[i].key = change.key;
        if (has.at[i])
            pairs[i].value = is_after ? change.value : change.old_value;
    }
    return pairs;
}

PyObject *tidb_packed_columns(PyObject *module, PyObject *arguments)
{
    TidbLayout *layout;
    Py_buffer data, ends;
    PyObject *has, *columns = NULL;
    Py_ssize_t first;
    int is_after;
    if (!PyArg_ParseTuple(arguments, "O!y*y*nSp", &TidbLayoutType, &layout, &data, &ends, &first, &has,
                          &is_after))
        return NULL;
    Bytes bytes = {data.buf, (const uint8_t *)data.buf + data.len};
    Bytes wanted = {(const uint8_t *)PyBytes_AS_STRING(has), NULL};
    wanted.end = wanted.at + PyBytes_GET_SIZE(has);
    Py_ssize_t count = PyBytes_GET_SIZE(has), places = ends.len / (Py_ssize_t)sizeof(int32_t);
    if (first < 0 || first > places || places - first < count + (count > 0))
        PyErr_SetString(PyExc_ValueError, "there is an end for each change");
    else {
        Pair *pairs = unpacked(bytes, (const int32_t *)ends.buf + first, wanted, is_after);
        columns = pairs == NULL ? NULL : columns_of(layout, pairs, count);
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&ends);
    return columns;
}

/* --- blocks -------------------------------------------------------------------------------------------- */

PyObject *tidb_columns(PyObject *module, PyObject *arguments)
{
    TidbLayout *layout;
    PyObject *blocks;
    int is_after;
    if (!PyArg_ParseTuple(arguments, "O!O!p", &TidbLayoutType, &layout, &PyTuple_Type, &blocks, &is_after))
        return NULL;
    Py_ssize_t count = count_changes(blocks), next = 0;
    int has_any = 0;
    PyObject *has = count < 0 ? NULL : PyBytes_FromStringAndSize(NULL, count);
    Pair *pairs = has == NULL ? NULL : calloc((size_t)count + 1, sizeof *pairs);
    if (pairs == NULL) {
        Py_XDECREF(has);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(blocks); i++) {
        const Block *block = (const Block *)PyTuple_GET_ITEM(blocks, i);
        for (size_t n = 0; n < block->count; n++, next++) {
            const Entry *entry = &block->first[n];
            Change change = change_at(block->storage, entry);
            int has_row = is_after ? entry->owner & 1 : entry->old_bytes > 0;
            PyBytes_AS_STRING(has)[next] = (char)has_row;
            pairs[next].key = change.key;
            has_any |= has_row;
            if (has_row)
                pairs[next].value = is_after ? change.value : change.old_value;
        }
    }
    PyObject *columns = NULL, *made = NULL;
    if (has_any)
        columns = columns_of(layout, pairs, count);
    else {
        free(pairs);
        columns = PyList_New(0);
    }
    if (columns != NULL)
        made = PyTuple_Pack(2, has, columns);
    Py_DECREF(has);
    Py_XDECREF(columns);
    return made;
}
