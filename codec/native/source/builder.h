/* The buffers of an Arrow array, filled without the GIL. */
#ifndef TIDEMILL_BUILDER_H
#define TIDEMILL_BUILDER_H

#include "value.h"

typedef struct {
    const Column *column;
    Py_ssize_t rows, count, nulls; /* there is room for `rows` */
    uint8_t *validity; /* a bit for each row, set unless it is NULL; none before the first NULL */
    int64_t *offsets;  /* of text and bytes */
    uint8_t *values;
    size_t size, room;
} Builder;

/* Return builders of that many rows, one for each column; NULL without memory. */
Builder *new_builders(const Layout *layout, Py_ssize_t rows);
void free_builders(const Layout *layout, Builder *builders);

/* Append a value; -1 if its array can't hold it, or without memory. A hidden column has no array. */
int append_value(Builder *builder, const Value *value, Outcome outcome);
int append_null(Builder *builder);

/* Make the validity, if there is none, with the rows so far as valid; -1 without memory. */
int begin_nulls(Builder *builder);

/* Return where that many bytes of values are to be put; NULL without memory. */
uint8_t *room_for(Builder *builder, size_t size);

static inline void set_valid(Builder *builder, Py_ssize_t row)
{
    builder->validity[row / 8] |= (uint8_t)(1 << row % 8);
}

typedef struct {
    Py_ssize_t column, offset; /* of what can't be read */
} Failure;

/* Free the builders and set the exception; without builders that of no memory. */
PyObject *fail(const Layout *layout, Builder *builders, Failure failure);

/* Return a list of (validity or None, offsets or None, values), and free the builders. */
PyObject *arrays_of(const Layout *layout, Builder *builders);

/* Return an object that owns the block, which it takes from where it was, without room that isn't used. */
PyObject *buffer_of(void **block, size_t size);

extern PyTypeObject BufferType;

#endif
