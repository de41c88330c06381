/* Passes over items, which codec/item_passes.py describes. */
#ifndef ITEMS_H
#define ITEMS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *use_items(PyObject *module, PyObject *arguments);
PyObject *whole_items(PyObject *module, PyObject *arguments);
PyObject *counted_items(PyObject *module, PyObject *transactions);

#endif
