#include "reader.h"

int get_source(Source *source, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 5 || !PyBytes_CheckExact(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "expected bytes, start, end, commit_ts and start_ts");
        return -1;
    }
    Py_ssize_t size = PyBytes_GET_SIZE(arguments[0]);
    Py_ssize_t start = PyLong_AsSsize_t(arguments[1]), end = PyLong_AsSsize_t(arguments[2]);
    if (PyErr_Occurred())
        return -1;
    if (start < 0 || start > end || end > size) {
        PyErr_SetString(PyExc_ValueError, "the rows aren't within the bytes");
        return -1;
    }
    source->start = (const uint8_t *)PyBytes_AS_STRING(arguments[0]);
    source->at = source->start + start;
    source->end = source->start + end;
    source->commit_ts = arguments[3];
    source->start_ts = arguments[4];
    return 0;
}

int append_change(const Maker *maker, const Source *source, PyObject *changes, PyObject *before,
                  PyObject *after)
{
    PyObject *arguments[] = {NULL, /* room that PY_VECTORCALL_ARGUMENTS_OFFSET grants */
                             source->commit_ts,
                             source->start_ts,
                             maker->table,
                             maker->op,
                             before == NULL ? Py_None : before,
                             after == NULL ? Py_None : after};
    PyObject *change =
        PyObject_Vectorcall(maker->change, arguments + 1, 6 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (change == NULL)
        return -1;
    int failed = PyList_Append(changes, change);
    Py_DECREF(change);
    return failed;
}
