/* The module's function of an Arrow column's times as text. */
#ifndef TIDEMILL_TIME_TEXTS_H
#define TIDEMILL_TIME_TEXTS_H

#include "column.h"

/* (output, width, scale, rows, validity or None, values) to the offsets and values of an array of
 * large_string; a row that isn't valid has no text. */
PyObject *time_texts(PyObject *module, PyObject *arguments);

#endif
