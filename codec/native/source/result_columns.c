/* Rows of the binary protocol as Arrow columns. Only regular values are read here: for any other the functions
   raise ValueError, and the rows are to be read one by one. */
#include "columns.h"

static Py_ssize_t count_packets(const uint8_t *at, const uint8_t *end)
{
    Py_ssize_t count = 0;
    for (const uint8_t *stop; at < end; at = stop, count++) {
        stop = end_of_packet(&at, end);
        if (stop == NULL || stop - at == LONGEST_PAYLOAD)
            return -1;
    }
    return count;
}

static int read_row(const Layout *layout, Builder *builders, const uint8_t *start, const uint8_t **at,
                    const uint8_t *stop, Failure *failure)
{
    Value value;
    *failure = (Failure){0, *at - start};
    const uint8_t *nulls = nulls_of_row(layout, at, stop);
    if (nulls == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        *failure = (Failure){i, *at - start};
        int failed = is_null_in_row(nulls, i)
                         ? append_null(&builders[i])
                         : append_value(&builders[i], &value,
                                        read_sent_value(&layout->columns[i], at, stop, &value));
        if (failed)
            return -1;
    }
    return *at == stop ? 0 : -1;
}

PyObject *count_rows(PyObject *module, PyObject *packets)
{
    if (!PyBytes_Check(packets))
        return PyErr_Format(PyExc_TypeError, "packets are bytes");
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(packets);
    Py_ssize_t rows = count_packets(start, start + PyBytes_GET_SIZE(packets));
    return rows < 0 ? unreadable(0, 0) : PyLong_FromSsize_t(rows);
}

PyObject *result_columns(PyObject *module, PyObject *arguments)
{
    Layout *layout;
    Py_buffer data;
    PyObject *arrays = NULL;
    if (!PyArg_ParseTuple(arguments, "O!y*", &LayoutType, &layout, &data))
        return NULL;
    const uint8_t *start = data.buf, *at = start, *end = start + data.len;
    Py_ssize_t rows = count_packets(start, end);
    Failure failure = {0, 0};
    if (rows >= 0) {
        int failed = 0;
        Builder *builders;
        Py_BEGIN_ALLOW_THREADS
        builders = new_builders(layout, rows);
        while (builders != NULL && at < end && !failed) {
            const uint8_t *stop = end_of_packet(&at, end);
            failed = read_row(layout, builders, start, &at, stop, &failure) < 0;
        }
        Py_END_ALLOW_THREADS
        arrays = builders == NULL || failed ? fail(layout, builders, failure) : arrays_of(layout, builders);
    } else
        unreadable(0, 0);
    PyBuffer_Release(&data);
    return arrays;
}
