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

Py_ssize_t count_changes(PyObject *blocks)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(blocks); i++) {
        PyObject *block = PyTuple_GET_ITEM(blocks, i);
        if (!Py_IS_TYPE(block, &BlockType)) {
            PyErr_SetString(PyExc_TypeError, "changes are in blocks");
            return -1;
        }
        count += (Py_ssize_t)((Block *)block)->count;
    }
    return count;
}

PyObject *pack_changes(PyObject *module, PyObject *blocks)
{
    if (!PyTuple_Check(blocks)) {
        PyErr_SetString(PyExc_TypeError, "blocks are a tuple");
        return NULL;
    }
    Py_ssize_t count = count_changes(blocks), size = count * SIZES_BYTES;
    if (count < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(blocks); i++)
        size += (Py_ssize_t)((Block *)PyTuple_GET_ITEM(blocks, i))->content;
    PyObject *starts = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(int64_t));
    PyObject *data = PyBytes_FromStringAndSize(NULL, size);
    if (starts == NULL || data == NULL) {
        Py_XDECREF(starts);
        Py_XDECREF(data);
        return NULL;
    }
    int64_t *start = (int64_t *)PyBytes_AS_STRING(starts);
    uint8_t *first = (uint8_t *)PyBytes_AS_STRING(data), *into = first;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(blocks); i++) {
        const Block *block = (const Block *)PyTuple_GET_ITEM(blocks, i);
        for (size_t n = 0; n < block->count; n++) {
            const Entry *entry = &block->first[n];
            *start++ = into - first;
            memcpy(into, &entry->key_bytes, 4); /* blocks are only there where numbers are little-endian */
            memcpy(into + 4, &entry->value_bytes, 4);
            memcpy(into + SIZES_BYTES, key_of(block->storage, entry), content_bytes(entry));
            into += SIZES_BYTES + content_bytes(entry);
        }
    }
    *start = into - first;
    return Py_BuildValue("(NN)", starts, data);
}
