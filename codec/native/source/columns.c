/* Rows as Arrow columns. Only regular values are read here: for any other the functions raise ValueError, and
   the rows are to be read one by one. */
#include "columns.h"
#include "builder.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Py_ssize_t column, offset; /* of what can't be read */
} Failure;

static PyObject *fail(const Layout *layout, Builder *builders, Failure failure)
{
    if (builders == NULL)
        return PyErr_NoMemory();
    free_builders(layout, builders);
    return unreadable(failure.column, failure.offset);
}

/* --- row images ---------------------------------------------------------------------------------------- */

static int is_null(const uint8_t *bitmap, Py_ssize_t i)
{
    return bitmap[i / 8] >> (i % 8) & 1;
}

/* Row images, of which one column after the other is read: for each row, where its next value is. */
typedef struct {
    Py_ssize_t rows;
    const uint8_t *start, *end;
    const int64_t *starts;
    const uint8_t **at;
} Images;

static int is_null_in(const Images *images, Py_ssize_t row, Py_ssize_t i)
{
    return is_null(images->start + images->starts[row], i);
}

/* Read a column as any other code does; return the number of rows that could be read. */
static Py_ssize_t read_values(Images *images, Builder *builder, Py_ssize_t i)
{
    Value value;
    Py_ssize_t row = 0;
    for (; row < images->rows; row++) {
        if (is_null_in(images, row, i)) {
            if (!builder->column->nullable || append_null(builder) < 0)
                break;
            continue;
        }
        Outcome outcome = read_image_value(builder->column, &images->at[row], images->end, &value);
        if (append_value(builder, &value, outcome) < 0)
            break;
    }
    return row;
}

/* Copy a column whose stored bytes are those of the array. Inlined for each width: a copy of constant size is
   one instruction. */
static inline __attribute__((always_inline)) Py_ssize_t copy_width(Images *images, Builder *builder,
                                                                   Py_ssize_t i, const Py_ssize_t width)
{
    Py_ssize_t row = 0;
    for (; row < images->rows; row++) {
        const uint8_t *at = images->at[row];
        if (is_null_in(images, row, i)) {
            if (!builder->column->nullable || append_null(builder) < 0)
                break;
            continue;
        }
        if (images->end - at < width)
            break;
        memcpy(builder->values + builder->size, at, (size_t)width); /* it has room for all rows */
        builder->size += (size_t)width;
        images->at[row] = at + width;
        end_value(builder, 1);
    }
    return row;
}

static Py_ssize_t copy_values(Images *images, Builder *builder, Py_ssize_t i)
{
    switch (builder->column->width) {
    case 1:
        return copy_width(images, builder, i, 1);
    case 2:
        return copy_width(images, builder, i, 2);
    case 4:
        return copy_width(images, builder, i, 4);
    default:
        return copy_width(images, builder, i, 8);
    }
}

static int is_copied(const Column *column)
{
    int is_plain = column->output == INT || column->output == UINT || column->output == MEMBERS;
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !column->hidden &&
           ((column->input == LITTLE_ENDIAN_INT && is_plain && column->size == column->width) ||
            column->input == DOUBLE_BYTES || column->input == FLOAT_BYTES);
}

/* Read all columns; -1 for what can't be read. */
static int read_images(const Layout *layout, Images *images, Builder *builders, Failure *failure)
{
    Py_ssize_t bitmap_bytes = (layout->count + 7) / 8;
    for (Py_ssize_t row = 0; row < images->rows; row++) {
        int64_t start = images->starts[row];
        if (start < 0 || start > images->end - images->start ||
            images->end - images->start - start < bitmap_bytes)
            return -1;
        images->at[row] = images->start + start + bitmap_bytes;
    }
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        int is_copy = is_copied(&layout->columns[i]);
        Py_ssize_t row = is_copy ? copy_values(images, &builders[i], i)
                                 : read_values(images, &builders[i], i);
        if (row < images->rows) {
            *failure = (Failure){i, images->at[row] - images->start};
            return -1;
        }
    }
    return 0;
}

PyObject *image_columns(PyObject *module, PyObject *arguments)
{
    Layout *layout;
    Py_buffer data, starts;
    PyObject *arrays = NULL;
    if (!PyArg_ParseTuple(arguments, "O!y*y*", &LayoutType, &layout, &data, &starts))
        return NULL;
    Images images = {.rows = starts.len / (Py_ssize_t)sizeof(int64_t), .starts = starts.buf};
    images.start = data.buf;
    images.end = images.start + data.len;
    Failure failure = {0, 0};
    int failed = 0;
    Builder *builders;
    Py_BEGIN_ALLOW_THREADS
    images.at = malloc(((size_t)images.rows + 1) * sizeof *images.at);
    builders = images.at == NULL ? NULL : new_builders(layout, images.rows);
    if (builders != NULL)
        failed = read_images(layout, &images, builders, &failure) < 0;
    free(images.at);
    Py_END_ALLOW_THREADS
    if (builders == NULL || failed)
        fail(layout, builders, failure);
    else
        arrays = arrays_of(layout, builders);
    PyBuffer_Release(&data);
    PyBuffer_Release(&starts);
    return arrays;
}

/* Return where each image of the event begins, as int64; the values aren't looked at. */
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
        Py_ssize_t i = 0;
        Value value;
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
            for (; i < layout->count; i++)
                if (is_null(bitmap, i) ? !layout->columns[i].nullable
                                       : skip_image_value(&layout->columns[i], &at, end, &value) == CUT)
                    break;
        }
        if (i < layout->count || !bitmap_bytes) {
            PyMem_Free(starts);
            return unreadable(i, at - start);
        }
    }
    PyObject *made = PyBytes_FromStringAndSize((const char *)starts, count * (Py_ssize_t)sizeof(int64_t));
    PyMem_Free(starts);
    return made;
}

/* --- rows of the text protocol ------------------------------------------------------------------------- */

static Py_ssize_t count_packets(const uint8_t *at, const uint8_t *end)
{
    Py_ssize_t count = 0;
    for (const uint8_t *stop; at < end; at = stop, count++) {
        stop = end_of_packet(&at, end);
        if (stop == NULL || stop - at == LONGEST_PAYLOAD)
            return -1;
    }
    return count;
}

static int read_text(const Layout *layout, Builder *builders, const uint8_t *start, const uint8_t **at,
                     const uint8_t *stop, Failure *failure)
{
    Value value;
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        const Column *column = &layout->columns[i];
        *failure = (Failure){i, *at - start};
        if (next_printed_value(at, stop, &value) == CUT)
            return -1;
        int failed = value.stored == NULL
                         ? append_null(&builders[i])
                         : append_value(&builders[i], &value, read_printed_value(column, &value));
        if (failed)
            return -1;
    }
    return *at == stop ? 0 : -1;
}

PyObject *count_rows(PyObject *module, PyObject *packets)
{
    if (!PyBytes_Check(packets))
        return PyErr_Format(PyExc_TypeError, "packets are bytes");
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(packets);
    Py_ssize_t rows = count_packets(start, start + PyBytes_GET_SIZE(packets));
    return rows < 0 ? unreadable(0, 0) : PyLong_FromSsize_t(rows);
}

PyObject *text_columns(PyObject *module, PyObject *arguments)
{
    Layout *layout;
    Py_buffer data;
    PyObject *arrays = NULL;
    if (!PyArg_ParseTuple(arguments, "O!y*", &LayoutType, &layout, &data))
        return NULL;
    const uint8_t *start = data.buf, *at = start, *end = start + data.len;
    Py_ssize_t rows = has_point() ? count_packets(start, end) : -1;
    Failure failure = {0, 0};
    if (rows >= 0) {
        int failed = 0;
        Builder *builders;
        Py_BEGIN_ALLOW_THREADS
        builders = new_builders(layout, rows);
        while (builders != NULL && at < end && !failed) {
            const uint8_t *stop = end_of_packet(&at, end);
            failed = read_text(layout, builders, start, &at, stop, &failure) < 0;
        }
        Py_END_ALLOW_THREADS
        arrays = builders == NULL || failed ? fail(layout, builders, failure) : arrays_of(layout, builders);
    } else
        unreadable(0, 0);
    PyBuffer_Release(&data);
    return arrays;
}
