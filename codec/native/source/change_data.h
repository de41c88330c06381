/* Messages of TiKV's change feed. */
#ifndef TIDEMILL_CHANGE_DATA_H
#define TIDEMILL_CHANGE_DATA_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

enum { PREWRITE = 1, COMMIT, ROLLBACK, COMMITTED, INITIALIZED }; /* types of rows */
enum { ROW_PUT = 1, ROW_DELETE };                                /* their ops */

typedef struct {
    uint64_t start_ts, commit_ts, generation;
    const uint8_t *key, *value, *old_value; /* in the message */
    uint32_t key_bytes, value_bytes, old_bytes;
    uint8_t type, op;
} FeedRow;

/* The rows of one event of a region: prewrites first, in order within a type. */
typedef struct {
    PyObject_VAR_HEAD
    PyObject *message;
    FeedRow rows[];
} RegionRows;

extern PyTypeObject RegionRowsType;

/* A serialised ChangeDataEvent to a list of (region id, request id, payload): a resolved ts, or RegionRows. None
   if it contains anything else, or isn't regular. */
PyObject *change_data(PyObject *module, PyObject *data);

#endif
