/* Where row images begin. */
#include "bytes.h"
#include "columns.h"

static int is_null(const uint8_t *bitmap, Py_ssize_t i)
{
    return bitmap[i / 8] >> (i % 8) & 1;
}

/* Move `at` behind the values of a row without NULLs; -1 if one is cut off. */
static int skip_full_row(const Layout *layout, const uint8_t **at, const uint8_t *end)
{
    const uint8_t *next = *at;
    for (const Step *step = layout->steps; step < layout->steps + layout->step_count; step++) {
        if (end - next < step->fixed + step->length)
            return -1;
        next += step->fixed;
        uint64_t size = little_endian(next, step->length);
        next += step->length;
        if ((uint64_t)(end - next) < size)
            return -1;
        next += size;
    }
    *at = next;
    return 0;
}

/* Move `at` behind the values of a row; return the number of columns that could be read. */
static Py_ssize_t skip_row(const Layout *layout, const uint8_t *bitmap, const uint8_t **at, const uint8_t *end)
{
    Value value;
    uint8_t nulls = layout->count % 8 ? bitmap[layout->count / 8] << (8 - layout->count % 8) : 0;
    for (Py_ssize_t i = 0; i < layout->count / 8; i++)
        nulls |= bitmap[i];
    if (!nulls && skip_full_row(layout, at, end) == 0)
        return layout->count;
    Py_ssize_t i = 0;
    for (; i < layout->count; i++)
        if (is_null(bitmap, i) ? !layout->columns[i].nullable
                               : skip_image_value(&layout->columns[i], at, end, &value) == CUT)
            break;
    return i;
}

int skip_images(const Layout *layout, const uint8_t *at, const uint8_t *end, Py_ssize_t *count)
{
    Py_ssize_t bitmap_bytes = (layout->count + 7) / 8;
    for (*count = 0; at < end; ++*count) {
        const uint8_t *bitmap = at;
        if (end - at < bitmap_bytes || !bitmap_bytes)
            return 0;
        at += bitmap_bytes;
        if (skip_row(layout, bitmap, &at, end) < layout->count)
            return 0;
    }
    return 1;
}

PyObject *image_starts(PyObject *module, PyObject *arguments)
{
    Layout *layout;
    PyObject *data;
    Py_ssize_t first, last;
    if (!PyArg_ParseTuple(arguments, "O!Snn", &LayoutType, &layout, &data, &first, &last))
        return NULL;
    if (first < 0 || first > last || last > PyBytes_GET_SIZE(data))
        return unreadable(0, first);
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(data), *at = start + first, *end = start + last;
    Py_ssize_t bitmap_bytes = (layout->count + 7) / 8, count = 0, room = 64;
    int64_t *starts = PyMem_Malloc((size_t)room * sizeof(int64_t));
    if (starts == NULL)
        return PyErr_NoMemory();
    while (at < end) {
        const uint8_t *bitmap = at;
        Py_ssize_t read = 0;
        if (count == room) {
            room *= 2;
            int64_t *larger = PyMem_Realloc(starts, (size_t)room * sizeof(int64_t));
            if (larger == NULL) {
                PyMem_Free(starts);
                return PyErr_NoMemory();
            }
            starts = larger;
        }
        starts[count++] = at - start;
        if (end - at >= bitmap_bytes && bitmap_bytes) {
            at += bitmap_bytes;
            read = skip_row(layout, bitmap, &at, end);
        }
        if (read < layout->count || !bitmap_bytes) {
            PyMem_Free(starts);
            return unreadable(read, at - start);
        }
    }
    PyObject *made = PyBytes_FromStringAndSize((const char *)starts, count * (Py_ssize_t)sizeof(int64_t));
    PyMem_Free(starts);
    return made;
}
