/* Row images as Arrow columns: one column after the other is read, of all rows. Only regular values are read
   here: for any other the functions raise ValueError, and the rows are to be read one by one. */
#include "bytes.h"
#include "columns.h"

#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* The row images of an event. */
typedef struct {
    const uint8_t *start, *end;
    const int64_t *starts; /* where each image begins */
    const uint8_t **at;    /* for each row, where its next value is */
    Py_ssize_t rows;
} Event;

typedef struct {
    Py_ssize_t count, rows;
    Event *events;
    const uint8_t **at;
    uint8_t *nulls; /* the bitmaps of all rows in one: a bit for each column with a NULL */
} Images;

static int is_null(const uint8_t *bitmap, Py_ssize_t i)
{
    return bitmap[i / 8] >> (i % 8) & 1;
}

static int is_null_in(const Event *event, Py_ssize_t row, Py_ssize_t i)
{
    return is_null(event->start + event->starts[row], i);
}

/* Read a column as any other code does; return the number of rows that could be read, as the next functions
   do. */
static Py_ssize_t read_values(const Event *event, Builder *builder, Py_ssize_t i)
{
    Value value;
    Py_ssize_t row = 0;
    for (; row < event->rows; row++) {
        if (is_null_in(event, row, i)) {
            if (!builder->column->nullable || append_null(builder) < 0)
                break;
            continue;
        }
        Outcome outcome = read_image_value(builder->column, &event->at[row], event->end, &value);
        if (append_value(builder, &value, outcome) < 0)
            break;
    }
    return row;
}

/* --- values whose stored bytes are those of the array -------------------------------------------------- */

/* Inlined for each width, and with and without NULLs: a copy of constant size is one instruction. */
ALWAYS_INLINE Py_ssize_t copy_width(const Event *event, Builder *builder, Py_ssize_t i,
                                    const Py_ssize_t width, const int has_nulls)
{
    uint8_t *into = builder->values + builder->size; /* it has room for all rows */
    const uint8_t **at = event->at, *end = event->end;
    Py_ssize_t row = 0;
    for (; row < event->rows; row++, into += width) {
        if (has_nulls && is_null_in(event, row, i)) {
            if (!builder->column->nullable)
                break;
            memset(into, 0, (size_t)width);
            builder->nulls++;
            continue;
        }
        if (end - at[row] < width)
            break;
        memcpy(into, at[row], (size_t)width);
        at[row] += width;
        if (has_nulls)
            set_valid(builder, builder->count + row);
    }
    builder->count += row;
    builder->size += (size_t)(row * width);
    return row;
}

ALWAYS_INLINE Py_ssize_t copy_values(const Event *event, Builder *builder, Py_ssize_t i, const int has_nulls)
{
    switch (builder->column->width) {
    case 1:
        return copy_width(event, builder, i, 1, has_nulls);
    case 2:
        return copy_width(event, builder, i, 2, has_nulls);
    case 4:
        return copy_width(event, builder, i, 4, has_nulls);
    default:
        return copy_width(event, builder, i, 8, has_nulls);
    }
}

static int is_copied(const Column *column)
{
    int is_plain = column->output == INT || column->output == UINT || column->output == MEMBERS;
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !column->hidden &&
           ((column->input == LITTLE_ENDIAN_INT && is_plain && column->size == column->width) ||
            column->input == DOUBLE_BYTES || column->input == FLOAT_BYTES);
}

/* --- text and bytes ------------------------------------------------------------------------------------ */

/* Note where the values end, in the array and in the rows. */
ALWAYS_INLINE Py_ssize_t measure(const Event *event, Builder *builder, Py_ssize_t i, const int length_bytes,
                                 const int has_nulls)
{
    int64_t *ends = builder->offsets + builder->count + 1, total = ends[-1];
    const uint8_t **at = event->at, *end = event->end;
    Py_ssize_t row = 0;
    for (; row < event->rows; row++) {
        if (has_nulls && is_null_in(event, row, i)) {
            if (!builder->column->nullable)
                break;
            builder->nulls++;
            ends[row] = total;
            continue;
        }
        const uint8_t *length = at[row];
        if (end - length < length_bytes)
            break;
        uint64_t size = little_endian(length, length_bytes);
        if (size > (uint64_t)(end - length - length_bytes))
            break;
        at[row] = length + length_bytes + size;
        ends[row] = total += (int64_t)size;
        if (has_nulls)
            set_valid(builder, builder->count + row);
    }
    builder->count += row;
    return row;
}

ALWAYS_INLINE Py_ssize_t measure_values(const Event *event, Builder *builder, Py_ssize_t i,
                                        const int has_nulls)
{
    switch (builder->column->fixed) {
    case 1:
        return measure(event, builder, i, 1, has_nulls);
    case 2:
        return measure(event, builder, i, 2, has_nulls);
    default:
        return measure(event, builder, i, builder->column->fixed, has_nulls);
    }
}

static int is_ascii(const uint8_t *bytes, size_t size)
{
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++)
        any |= bytes[i];
    return any < 128;
}

/* Return the number of values that are what the column's array holds. */
static Py_ssize_t check_texts(const Builder *builder)
{
    const Column *column = builder->column;
    Py_ssize_t row = 0;
    if ((column->output != TEXT && column->output != ASCII) || is_ascii(builder->values, builder->size))
        return builder->count;
    for (const int64_t *at = builder->offsets; row < builder->count; row++) {
        const uint8_t *text = builder->values + at[row];
        Py_ssize_t size = (Py_ssize_t)(at[row + 1] - at[row]);
        if (column->output == TEXT ? !is_utf8(text, size) : !is_ascii(text, (size_t)size))
            break;
    }
    return row;
}

/* Copy the values that were measured; return the number of rows whose value the array holds, -1 without
   memory. */
static Py_ssize_t copy_texts(const Images *images, Builder *builder)
{
    const int64_t *offsets = builder->offsets;
    uint8_t *values = room_for(builder, (size_t)offsets[builder->count]);
    if (values == NULL)
        return -1;
    for (Py_ssize_t row = 0; row < builder->count; row++) {
        size_t size = (size_t)(offsets[row + 1] - offsets[row]);
        memcpy(values + offsets[row], images->at[row] - size, size);
    }
    return check_texts(builder);
}

static int is_measured(const Column *column)
{
    return column->input == COUNTED && !column->hidden && !column->padding && column->width == 0;
}

/* --- all columns --------------------------------------------------------------------------------------- */

/* Return the number of rows of which the column could be read. */
static Py_ssize_t read_column(const Images *images, Builder *builder, Py_ssize_t i)
{
    const Column *column = builder->column;
    int is_copy = is_copied(column), is_text = is_measured(column), has_nulls = is_null(images->nulls, i);
    Py_ssize_t rows = 0;
    if (has_nulls && (is_copy || is_text) && begin_nulls(builder) < 0)
        return 0;
    for (const Event *event = images->events; event < images->events + images->count; event++) {
        Py_ssize_t read = is_copy   ? has_nulls ? copy_values(event, builder, i, 1)
                                                : copy_values(event, builder, i, 0)
                          : is_text ? has_nulls ? measure_values(event, builder, i, 1)
                                                : measure_values(event, builder, i, 0)
                                    : read_values(event, builder, i);
        rows += read;
        if (read < event->rows)
            return rows;
    }
    return is_text ? copy_texts(images, builder) : rows;
}

/* Find the values behind the bitmaps; -1 for rows that aren't in their event. */
static int begin_rows(const Layout *layout, Images *images)
{
    Py_ssize_t bitmap_bytes = (layout->count + 7) / 8;
    for (const Event *event = images->events; event < images->events + images->count; event++)
        for (Py_ssize_t row = 0; row < event->rows; row++) {
            int64_t start = event->starts[row];
            if (start < 0 || start > event->end - event->start ||
                event->end - event->start - start < bitmap_bytes)
                return -1;
            event->at[row] = event->start + start + bitmap_bytes;
            for (Py_ssize_t i = 0; i < bitmap_bytes; i++)
                images->nulls[i] |= event->start[start + i];
        }
    return 0;
}

/* Read all columns; -1 for what can't be read. */
static int read_images(const Layout *layout, Images *images, Builder *builders, Failure *failure)
{
    if (begin_rows(layout, images) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        Py_ssize_t row = read_column(images, &builders[i], i);
        if (row == images->rows)
            continue;
        *failure = (Failure){i, 0};
        for (const Event *event = images->events; row >= 0 && event < images->events + images->count; event++) {
            if (row < event->rows) {
                failure->offset = event->at[row] - event->start;
                break;
            }
            row -= event->rows;
        }
        return -1;
    }
    return 0;
}

/* --- Python -------------------------------------------------------------------------------------------- */

/* Get the events, whose bytes the tuples keep; -1 with an exception. */
static int get_events(const Layout *layout, Images *images, PyObject *events, PyObject *starts)
{
    images->count = PyTuple_GET_SIZE(events);
    if (PyTuple_GET_SIZE(starts) != images->count) {
        PyErr_SetString(PyExc_ValueError, "there are starts for each event");
        return -1;
    }
    images->events = PyMem_Calloc((size_t)images->count + 1, sizeof *images->events);
    images->nulls = PyMem_Calloc((size_t)layout->count / 8 + 1, 1);
    if (images->events == NULL || images->nulls == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < images->count; i++) {
        PyObject *event = PyTuple_GET_ITEM(events, i), *first = PyTuple_GET_ITEM(starts, i);
        if (!PyBytes_CheckExact(event) || !PyBytes_CheckExact(first)) {
            PyErr_SetString(PyExc_TypeError, "events and starts are bytes");
            return -1;
        }
        const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(event);
        Py_ssize_t rows = PyBytes_GET_SIZE(first) / (Py_ssize_t)sizeof(int64_t);
        images->events[i] = (Event){start, start + PyBytes_GET_SIZE(event),
                                    (const int64_t *)PyBytes_AS_STRING(first), NULL, rows};
        images->rows += rows;
    }
    return 0;
}

/* Return builders with all rows, or NULL: with `failure`, or without memory. */
static Builder *read_events(const Layout *layout, Images *images, Failure *failure, int *failed)
{
    images->at = malloc(((size_t)images->rows + 1) * sizeof *images->at);
    Builder *builders = images->at == NULL ? NULL : new_builders(layout, images->rows);
    if (builders != NULL) {
        const uint8_t **at = images->at;
        for (Py_ssize_t i = 0; i < images->count; at += images->events[i++].rows)
            images->events[i].at = at;
        *failed = read_images(layout, images, builders, failure) < 0;
    }
    free(images->at);
    return builders;
}

PyObject *image_columns(PyObject *module, PyObject *arguments)
{
    Layout *layout;
    PyObject *events, *starts, *arrays = NULL;
    Images images = {0};
    Failure failure = {0, 0};
    int failed = 0;
    if (!PyArg_ParseTuple(arguments, "O!O!O!", &LayoutType, &layout, &PyTuple_Type, &events, &PyTuple_Type,
                          &starts))
        return NULL;
    if (get_events(layout, &images, events, starts) == 0) {
        Builder *builders;
        Py_BEGIN_ALLOW_THREADS
        builders = read_events(layout, &images, &failure, &failed);
        Py_END_ALLOW_THREADS
        arrays = builders == NULL || failed ? fail(layout, builders, failure) : arrays_of(layout, builders);
    }
    PyMem_Free(images.events);
    PyMem_Free(images.nulls);
    return arrays;
}
