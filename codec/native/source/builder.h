/* The buffers of an Arrow array, filled without the GIL. */
#ifndef TIDEMILL_BUILDER_H
#define TIDEMILL_BUILDER_H

#include "value.h"

typedef struct {
    const Column *column;
    Py_ssize_t count, nulls;
    uint8_t *validity; /* a bit for each row, set unless it is NULL */
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

static inline void end_value(Builder *builder, int is_valid)
{
    if (is_valid)
        builder->validity[builder->count / 8] |= (uint8_t)(1 << builder->count % 8);
    else
        builder->nulls++;
    builder->count++;
    if (builder->offsets != NULL)
        builder->offsets[builder->count] = (int64_t)builder->size;
}

/* Return a list of (validity or None, offsets or None, values), and free the builders. */
PyObject *arrays_of(const Layout *layout, Builder *builders);

extern PyTypeObject BufferType;

#endif
