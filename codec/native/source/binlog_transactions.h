/* Whole transactions of a binlog. */
#ifndef TIDEMILL_BINLOG_TRANSACTIONS_H
#define TIDEMILL_BINLOG_TRANSACTIONS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *binlog_transactions(PyObject *module, PyObject *arguments);

#endif
