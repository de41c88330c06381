/* The module's function of Arrow columns as JSON. */
#ifndef TIDEMILL_JSON_TEXTS_H
#define TIDEMILL_JSON_TEXTS_H

#include "column.h"

/* (columns, rows, bits of the rows that are absent or None, the first row's bit, powers of ten, most bytes)
 * to the buffers of an array of string. A column is (output, width, scale, is quoted, bytes before a value,
 * the first row's place, validity or None, offsets or None, values). */
PyObject *json_texts(PyObject *module, PyObject *arguments);

#endif
