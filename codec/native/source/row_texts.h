/* The module's function of texts that are joined row by row. */
#ifndef TIDEMILL_ROW_TEXTS_H
#define TIDEMILL_ROW_TEXTS_H

#include "column.h"

/* (count, parts, powers of ten) to a list of `count` bytes, each of which has one piece of every part: a part
 * of bytes is the same piece for all, a list of bytes has one for each, and (rows, place, writer) is the
 * value at this place of each row, which is a tuple.
 *
 * A writer is (output, scale, is HTML, is a number, members or None, bytes before a value, bytes after it, bytes of NULL,
 * function). A value that isn't regular is written by the function, of a list with it to a list of bytes. */
PyObject *row_texts(PyObject *module, PyObject *arguments);

int load_row_texts(void);

#endif
