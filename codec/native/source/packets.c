/* Rows of a result in the text protocol, as they are received: a row has one packet, or several if it is long. */
#include "packets.h"
#include "bytes.h"
#include "value.h"

enum { EOF_MARK = 0xFE, ERROR_MARK = 0xFF, EOF_BYTES = 5 };

/* True if the payload ends the result: no row begins so. */
static int is_end(const uint8_t *payload, Py_ssize_t size)
{
    return size && (payload[0] == ERROR_MARK || (payload[0] == EOF_MARK && size == EOF_BYTES));
}

/* Return the end of the row that starts at `at`; NULL if it is cut, or is the end of the result. */
static const uint8_t *end_of_row(const uint8_t *at, const uint8_t *end)
{
    for (int is_first = 1;; is_first = 0) {
        const uint8_t *stop = end_of_packet(&at, end);
        if (stop == NULL || (is_first && is_end(at, stop - at)))
            return NULL;
        if (stop - at != LONGEST_PAYLOAD)
            return stop;
        at = stop;
    }
}

PyObject *whole_rows(PyObject *module, PyObject *arguments)
{
    Py_buffer data;
    Py_ssize_t begin, rows = 0;
    if (!PyArg_ParseTuple(arguments, "y*n", &data, &begin))
        return NULL;
    if (begin < 0 || begin > data.len) {
        PyBuffer_Release(&data);
        return PyErr_Format(PyExc_ValueError, "the rows start outside the data");
    }
    const uint8_t *start = data.buf, *at = start + begin, *last = at, *stop;
    while ((stop = end_of_row(at, start + data.len)) != NULL) {
        last = at;
        at = stop;
        rows++;
    }
    PyBuffer_Release(&data);
    return Py_BuildValue("nnn", rows, (Py_ssize_t)(last - start), (Py_ssize_t)(at - start));
}
