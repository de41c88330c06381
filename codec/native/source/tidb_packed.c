/* Changes of TiKV in one piece of bytes each. */
#include "bytes.h"
#include "tidb.h"

#include <string.h>

enum { SIZES_BYTES = 8 };

int unpack_change(Bytes packed, Change *change)
{
    if (packed.end - packed.at < SIZES_BYTES)
        return -1;
    uint64_t key_bytes = little_endian(packed.at, 4), value_bytes = little_endian(packed.at + 4, 4);
    const uint8_t *key = packed.at + SIZES_BYTES;
    if (key_bytes + value_bytes > (uint64_t)(packed.end - key))
        return -1;
    const uint8_t *value = key + key_bytes, *old_value = value + value_bytes;
    *change = (Change){{key, value}, {value, old_value}, {old_value, packed.end}};
    return 0;
}

/* The bytes that a change has, with new references. */
typedef struct {
    PyObject *parts[3];
} Parts;

static void free_parts(Parts *all, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; all != NULL && i < count; i++)
        for (int part = 0; part < 3; part++)
            Py_XDECREF(all[i].parts[part]);
    PyMem_Free(all);
}

static int get_parts(Parts *into, PyObject *change, int64_t *size)
{
    static const char *const TEXTS[3] = {"key", "value", "old_value"};
    static PyObject *names[3];
    *size = SIZES_BYTES;
    for (int part = 0; part < 3; part++) {
        if (names[part] == NULL && (names[part] = PyUnicode_InternFromString(TEXTS[part])) == NULL)
            return -1;
        PyObject *bytes = into->parts[part] = PyObject_GetAttr(change, names[part]);
        if (bytes == NULL)
            return -1;
        if (!PyBytes_CheckExact(bytes) || PyBytes_GET_SIZE(bytes) > UINT32_MAX) {
            PyErr_Format(PyExc_TypeError, "%s isn't bytes of less than 4 GiB", TEXTS[part]);
            return -1;
        }
        *size += PyBytes_GET_SIZE(bytes);
    }
    return 0;
}

static uint8_t *put(uint8_t *into, PyObject *bytes)
{
    size_t size = (size_t)PyBytes_GET_SIZE(bytes);
    memcpy(into, PyBytes_AS_STRING(bytes), size);
    return into + size;
}

static uint8_t *put_size(uint8_t *into, PyObject *bytes)
{
    Py_ssize_t size = PyBytes_GET_SIZE(bytes);
    for (int i = 0; i < 4; i++)
        *into++ = (uint8_t)(size >> 8 * i);
    return into;
}

PyObject *pack_changes(PyObject *module, PyObject *given)
{
    PyObject *changes = PySequence_Tuple(given), *starts = NULL, *data = NULL;
    if (changes == NULL)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(changes);
    Parts *all = PyMem_Calloc((size_t)count + 1, sizeof *all);
    if (all == NULL) {
        Py_DECREF(changes);
        return PyErr_NoMemory();
    }
    starts = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(int64_t));
    int64_t total = 0, size, *start = starts == NULL ? NULL : (int64_t *)PyBytes_AS_STRING(starts);
    for (Py_ssize_t i = 0; starts != NULL && i < count; i++) {
        start[i] = total;
        if (get_parts(&all[i], PyTuple_GET_ITEM(changes, i), &size) < 0)
            Py_CLEAR(starts);
        total += size;
    }
    if (starts != NULL)
        data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (data != NULL) {
        start[count] = total;
        uint8_t *into = (uint8_t *)PyBytes_AS_STRING(data);
        for (Py_ssize_t i = 0; i < count; i++) {
            into = put_size(put_size(into, all[i].parts[0]), all[i].parts[1]);
            into = put(put(put(into, all[i].parts[0]), all[i].parts[1]), all[i].parts[2]);
        }
    }
    free_parts(all, count);
    Py_DECREF(changes);
    if (data == NULL) {
        Py_XDECREF(starts);
        return NULL;
    }
    return Py_BuildValue("(NN)", starts, data);
}
