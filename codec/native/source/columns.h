/* The module's functions of rows as Arrow columns. */
#ifndef TIDEMILL_COLUMNS_H
#define TIDEMILL_COLUMNS_H

#include "builder.h"

/* (layout, events, starts of the row images of each as int64) to a list of arrays' buffers. */
PyObject *image_columns(PyObject *module, PyObject *arguments);

/* (layout, event, start, end of its row images) to the start of each, as int64. */
PyObject *image_starts(PyObject *module, PyObject *arguments);

/* Count the row images up to `end`, which have all columns; 0 if one is cut off. */
int skip_images(const Layout *layout, const uint8_t *at, const uint8_t *end, Py_ssize_t *count);

/* (layout, packets) to a list of arrays' buffers. */
PyObject *result_columns(PyObject *module, PyObject *arguments);

/* Packets to the number of rows, none of which may have more than one packet. */
PyObject *count_rows(PyObject *module, PyObject *packets);

#endif
