/* Messages of TiKV's change feed. */
#ifndef TIDEMILL_CHANGE_DATA_H
#define TIDEMILL_CHANGE_DATA_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* A serialised ChangeDataEvent to a list of (region id, request id, payload): a resolved ts, or a list with the
   columns of rows for each of their types. None if it contains anything else, or isn't regular. */
PyObject *change_data(PyObject *module, PyObject *data);

#endif
