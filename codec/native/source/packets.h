/* The module's functions of packets. */
#ifndef TIDEMILL_PACKETS_H
#define TIDEMILL_PACKETS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* (data, start of a row) to the number of whole rows, the start of the last one, and their end. */
PyObject *whole_rows(PyObject *module, PyObject *arguments);

/* Packets of whole rows to the start of each row and the end of the last one, as int64. */
PyObject *row_starts(PyObject *module, PyObject *packets);

/* Bytes to the payloads whose packets are all there, and the end of these packets. */
PyObject *whole_payloads(PyObject *module, PyObject *data);

#endif
