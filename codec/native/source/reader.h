/* Functions of bytes that return the changes of the rows in them. */
#ifndef TIDEMILL_READER_H
#define TIDEMILL_READER_H

#include "column.h"

typedef struct {
    Layout *layout;
    PyObject *change; /* the class RowChange */
    PyObject *table, *op;
} Maker;

/* Bytes, and the timestamps of the changes in them. */
typedef struct {
    const uint8_t *start, *at, *end;
    PyObject *commit_ts, *start_ts;
} Source;

/* Get (data, start, end, commit_ts, start_ts); -1 with an exception if they are no such arguments. */
int get_source(Source *source, PyObject *const *arguments, Py_ssize_t count);

/* Append a change to the list; its rows are NULL where it has none. -1 with an exception. */
int append_change(const Maker *maker, const Source *source, PyObject *changes, PyObject *before,
                  PyObject *after);

/* (columns' bitmaps and ImageReader by event type, events, commit_ts and start_ts of each) to the list of changes
   of each event; None for an event that lacks columns or can't be read. */
PyObject *event_changes(PyObject *module, PyObject *arguments);

/* (columns' bitmaps and ImageReader by event type, events) to the number of changes of each; -1 as above. */
PyObject *event_counts(PyObject *module, PyObject *arguments);

extern PyTypeObject ImageReaderType, ResultReaderType;

#endif
