/* Rows of a result as they are received: a row has one packet, or several if it is long. */
#include "packets.h"
#include "bytes.h"
#include "value.h"

#include <string.h>

enum { EOF_MARK = 0xFE, ERROR_MARK = 0xFF, EOF_BYTES = 5 };

/* True if the packet at `at` ends the result: no row begins so. */
static int is_end(const uint8_t *at, const uint8_t *end)
{
    const uint8_t *stop = end_of_packet(&at, end);
    return stop != NULL && stop > at && (*at == ERROR_MARK || (*at == EOF_MARK && stop - at == EOF_BYTES));
}

/* Return the end of the row that starts at `at`; NULL if it is cut. */
static const uint8_t *end_of_row(const uint8_t *at, const uint8_t *end)
{
    for (;;) {
        const uint8_t *stop = end_of_packet(&at, end);
        if (stop == NULL || stop - at != LONGEST_PAYLOAD)
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
    const uint8_t *start = data.buf, *end = start + data.len, *at = start + begin, *last = at, *stop;
    while (!is_end(at, end) && (stop = end_of_row(at, end)) != NULL) {
        last = at;
        at = stop;
        rows++;
    }
    PyBuffer_Release(&data);
    return Py_BuildValue("nnn", rows, (Py_ssize_t)(last - start), (Py_ssize_t)(at - start));
}

PyObject *row_starts(PyObject *module, PyObject *packets)
{
    if (!PyBytes_Check(packets))
        return PyErr_Format(PyExc_TypeError, "packets are bytes");
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(packets), *end = start + PyBytes_GET_SIZE(packets);
    Py_ssize_t rows = 0;
    for (const uint8_t *at = start; at < end; rows++)
        if ((at = end_of_row(at, end)) == NULL)
            return PyErr_Format(PyExc_ValueError, "row %zd is cut off", rows);
    PyObject *found = PyBytes_FromStringAndSize(NULL, (rows + 1) * (Py_ssize_t)sizeof(int64_t));
    if (found == NULL)
        return NULL;
    int64_t *into = (int64_t *)PyBytes_AS_STRING(found);
    for (const uint8_t *at = start; rows--; at = end_of_row(at, end))
        *into++ = at - start;
    *into = end - start;
    return found;
}

/* Return the payload of the packets from `at` to `end`, without their headers. */
static PyObject *payload_of(const uint8_t *at, const uint8_t *end)
{
    Py_ssize_t headers = 1 + (end - at - 1) / (HEADER_BYTES + LONGEST_PAYLOAD);
    PyObject *payload = PyBytes_FromStringAndSize(NULL, end - at - headers * HEADER_BYTES);
    if (payload == NULL)
        return NULL;
    for (char *into = PyBytes_AS_STRING(payload); at < end;) {
        const uint8_t *stop = end_of_packet(&at, end);
        memcpy(into, at, (size_t)(stop - at));
        into += stop - at;
        at = stop;
    }
    return payload;
}

PyObject *whole_payloads(PyObject *module, PyObject *data)
{
    if (!PyBytes_Check(data))
        return PyErr_Format(PyExc_TypeError, "packets are bytes");
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(data), *end = start + PyBytes_GET_SIZE(data);
    const uint8_t *at = start, *stop;
    PyObject *payloads = PyList_New(0);
    for (; payloads != NULL && (stop = end_of_row(at, end)) != NULL; at = stop) {
        PyObject *payload = payload_of(at, stop);
        if (payload == NULL || PyList_Append(payloads, payload) < 0)
            Py_CLEAR(payloads);
        Py_XDECREF(payload);
    }
    return payloads == NULL ? NULL : Py_BuildValue("Nn", payloads, (Py_ssize_t)(at - start));
}
