#include "builder.h"
#include "memory.h"
#include "calendar.h"

#include <stdlib.h>
#include <string.h>

static int is_variable(const Column *column)
{
    return column->width == 0;
}

Builder *new_builders(const Layout *layout, Py_ssize_t rows)
{
    Builder *builders = calloc((size_t)layout->count + 1, sizeof(Builder));
    for (Py_ssize_t i = 0; builders != NULL && i < layout->count; i++) {
        Builder *builder = &builders[i];
        builder->column = &layout->columns[i];
        if (builder->column->hidden)
            continue;
        builder->rows = rows;
        size_t width = (size_t)builder->column->width;
        builder->values = take_memory(width * (size_t)rows + 1); /* text and bytes: it grows */
        if (builder->values != NULL)
            builder->room = memory_room(builder->values);
        if (is_variable(builder->column))
            builder->offsets = take_memory(((size_t)rows + 1) * sizeof(int64_t));
        if (builder->offsets != NULL)
            builder->offsets[0] = 0;
        if (builder->values == NULL || (is_variable(builder->column) && builder->offsets == NULL)) {
            free_builders(layout, builders);
            return NULL;
        }
    }
    return builders;
}

void free_builders(const Layout *layout, Builder *builders)
{
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        give_memory(builders[i].validity);
        give_memory(builders[i].offsets);
        give_memory(builders[i].values);
    }
    free(builders);
}

int begin_nulls(Builder *builder)
{
    if (builder->validity == NULL) {
        size_t size = (size_t)builder->rows / 8 + 1;
        builder->validity = take_memory(size);
        if (builder->validity == NULL)
            return -1;
        memset(builder->validity, 0, size);
        for (Py_ssize_t row = 0; row < builder->count; row++)
            set_valid(builder, row);
    }
    return 0;
}

uint8_t *room_for(Builder *builder, size_t size)
{
    if (builder->room - builder->size < size) {
        uint8_t *values = grow_memory(builder->values, builder->size, 2 * (builder->size + size) + 1024);
        if (values == NULL)
            return NULL;
        builder->values = values;
        builder->room = memory_room(values);
    }
    uint8_t *into = builder->values + builder->size;
    builder->size += size;
    return into;
}

static int append_bytes(Builder *builder, const Value *value)
{
    Py_ssize_t padding = builder->column->padding > value->size ? builder->column->padding - value->size : 0;
    uint8_t *into = room_for(builder, (size_t)(value->size + padding));
    if (into == NULL)
        return -1;
    memcpy(into, value->stored, (size_t)value->size);
    memset(into + value->size, 0, (size_t)padding);
    return 0;
}

static int append_fixed(Builder *builder, const void *value, size_t width)
{
    uint8_t *into = room_for(builder, width);
    if (into == NULL)
        return -1;
    memcpy(into, value, width);
    return 0;
}

static int append_integer(Builder *builder, int64_t number)
{
    int8_t byte = (int8_t)number;
    int16_t word = (int16_t)number;
    int32_t half = (int32_t)number;
    switch (builder->column->width) {
    case 1:
        return append_fixed(builder, &byte, 1);
    case 2:
        return append_fixed(builder, &word, 2);
    case 4:
        return append_fixed(builder, &half, 4);
    default:
        return append_fixed(builder, &number, 8);
    }
}

/* True if an integer of that width has the number; one of TiDB may be any. */
static int holds(const Column *column, int64_t number)
{
    int unused = 64 - 8 * column->width;
    return column->output == UINT ? (uint64_t)number << unused >> unused == (uint64_t)number
                                  : (int64_t)((uint64_t)number << unused) >> unused == number;
}

static int append_decimal(Builder *builder, int128 decimal)
{
    int128 limit = builder->column->limit;
    return decimal < limit && decimal > -limit ? append_fixed(builder, &decimal, 16) : -1;
}

static int append_regular(Builder *builder, const Value *value)
{
    const Column *column = builder->column;
    switch (column->output) {
    case INT:
    case UINT:
        return holds(column, value->number) ? append_integer(builder, value->number) : -1;
    case DOUBLE:
        if (column->width == 4) {
            float single = (float)value->real;
            return (double)single == value->real ? append_fixed(builder, &single, 4) : -1;
        }
        return append_fixed(builder, &value->real, 8);
    case DECIMAL:
        return append_decimal(builder, value->decimal);
    case DATE:
        return append_integer(builder, days_of(value->year, value->month, value->day));
    case DATETIME: {
        int64_t hours = days_of(value->year, value->month, value->day) * 24 + value->hour;
        int64_t seconds = (hours * 60 + value->minute) * 60 + value->second;
        return append_integer(builder, seconds * 1000000 + value->micros);
    }
    case MEMBER:
        if ((uint64_t)value->number >= (uint64_t)PyTuple_GET_SIZE(column->members))
            return -1;
        return append_integer(builder, value->number);
    case TIMESTAMP:
    case DURATION:
    case MEMBERS:
        return append_integer(builder, value->number);
    case ASCII:
        for (Py_ssize_t i = 0; i < value->size; i++)
            if (value->stored[i] > 127)
                return -1;
        return append_bytes(builder, value);
    case TEXT:
        return is_utf8(value->stored, value->size) ? append_bytes(builder, value) : -1;
    default:
        return append_bytes(builder, value);
    }
}

static void end_value(Builder *builder)
{
    builder->count++;
    if (builder->offsets != NULL)
        builder->offsets[builder->count] = (int64_t)builder->size;
}

int append_value(Builder *builder, const Value *value, Outcome outcome)
{
    if (outcome == CUT)
        return -1;
    if (builder->column->hidden)
        return 0;
    if (outcome != REGULAR || append_regular(builder, value) < 0)
        return -1;
    if (builder->validity != NULL)
        set_valid(builder, builder->count);
    end_value(builder);
    return 0;
}

int append_null(Builder *builder)
{
    static const uint8_t nothing[16];
    if (builder->column->hidden)
        return 0;
    if (begin_nulls(builder) < 0 ||
        (!is_variable(builder->column) && append_fixed(builder, nothing, (size_t)builder->column->width) < 0))
        return -1;
    builder->nulls++;
    end_value(builder);
    return 0;
}

PyObject *fail(const Layout *layout, Builder *builders, Failure failure)
{
    if (builders == NULL)
        return PyErr_NoMemory();
    free_builders(layout, builders);
    return unreadable(failure.column, failure.offset);
}

/* --- buffers of Python --------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    void *bytes;
    Py_ssize_t size;
} Buffer;

PyObject *buffer_of(void **block, size_t size)
{
    Buffer *buffer = PyObject_New(Buffer, &BufferType);
    if (buffer != NULL) {
        void *smaller = memory_room(*block) / 2 > size ? grow_memory(*block, size, size + 1) : NULL;
        buffer->bytes = smaller == NULL ? *block : smaller;
        buffer->size = (Py_ssize_t)size;
        *block = NULL;
    }
    return (PyObject *)buffer;
}

static PyObject *array_of(Builder *builder)
{
    PyObject *validity = Py_NewRef(Py_None), *offsets = Py_NewRef(Py_None), *values = NULL;
    if (builder->nulls)
        Py_SETREF(validity, buffer_of((void **)&builder->validity, (size_t)builder->count / 8 + 1));
    if (builder->offsets != NULL)
        Py_SETREF(offsets, buffer_of((void **)&builder->offsets, ((size_t)builder->count + 1) * 8));
    values = buffer_of((void **)&builder->values, builder->size);
    if (validity == NULL || offsets == NULL || values == NULL) {
        Py_XDECREF(validity);
        Py_XDECREF(offsets);
        Py_XDECREF(values);
        return NULL;
    }
    return Py_BuildValue("(NNN)", validity, offsets, values);
}

PyObject *arrays_of(const Layout *layout, Builder *builders)
{
    PyObject *arrays = PyList_New(0);
    for (Py_ssize_t i = 0; arrays != NULL && i < layout->count; i++) {
        if (builders[i].column->hidden)
            continue;
        PyObject *array = array_of(&builders[i]);
        if (array == NULL || PyList_Append(arrays, array) < 0)
            Py_CLEAR(arrays);
        Py_XDECREF(array);
    }
    free_builders(layout, builders);
    return arrays;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    Buffer *buffer = (Buffer *)self;
    return PyBuffer_FillInfo(view, self, buffer->bytes, buffer->size, 1, flags);
}

static void free_buffer(PyObject *self)
{
    give_memory(((Buffer *)self)->bytes);
    Py_TYPE(self)->tp_free(self);
}

static PyBufferProcs buffer_procs = {.bf_getbuffer = get_buffer};

PyTypeObject BufferType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tidemill.codec.native._native.Buffer",
    .tp_doc = "Bytes of an Arrow array.",
    .tp_basicsize = sizeof(Buffer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = free_buffer,
    .tp_as_buffer = &buffer_procs,
};
