/* A value between its stored bytes and what is made of it. */
#ifndef TIDEMILL_VALUE_H
#define TIDEMILL_VALUE_H

#include "column.h"

typedef struct {
    const uint8_t *stored; /* the bytes that `reader` takes; of text and bytes the value itself */
    Py_ssize_t size;
    int64_t number; /* an integer; the bits of an unsigned one; microseconds of a duration */
    double real;
    int128 decimal;
    int year, month, day, hour, minute, second, micros;
    uint8_t made[8]; /* the stored bytes of a number that wasn't stored as a cell */
} Value;

typedef enum {
    REGULAR,
    IRREGULAR, /* to be made by the column's `reader` of the stored bytes */
    CUT        /* the bytes end before the value does */
} Outcome;

/* Read a value of a row image and move `at` behind it. */
Outcome read_image_value(const Column *column, const uint8_t **at, const uint8_t *end, Value *value);

/* Bytes that each value in a row image has, or its length. */
int image_bytes(const Column *column);

/* Bytes of a decimal's words. */
int decimal_bytes(int digits, int scale);

/* Read the words of a decimal; IRREGULAR if one has too many digits. */
Outcome read_packed_decimal(const uint8_t *at, int digits, int scale, int128 *decimal);

/* Move `at` behind a value of a row image without reading it; text and bytes are in `value`. */
Outcome skip_image_value(const Column *column, const uint8_t **at, const uint8_t *end, Value *value);

enum { HEADER_BYTES = 4, LONGEST_PAYLOAD = 0xFFFFFF }; /* of a packet; a longer payload goes on in the next */

/* Move `at` behind the header of a packet and return the packet's end; NULL if it is cut. */
const uint8_t *end_of_packet(const uint8_t **at, const uint8_t *end);

/* Read a value of a row of the binary protocol that isn't NULL, and move `at` after it. */
Outcome read_sent_value(const Column *column, const uint8_t **at, const uint8_t *end, Value *value);

/* Move `at` after the head of a row of the binary protocol; return its NULL bits, or NULL if it is no such row. */
const uint8_t *nulls_of_row(const Layout *layout, const uint8_t **at, const uint8_t *end);

/* True if column `i` is NULL. */
static inline int is_null_in_row(const uint8_t *nulls, Py_ssize_t i)
{
    return nulls[(i + 2) / 8] >> (i + 2) % 8 & 1;
}

/* Return the Python object of a value, or NULL with an exception. */
PyObject *object_of(const Column *column, const Value *value, Outcome outcome);

/* True if the bytes are text in UTF-8, without surrogates. */
int is_utf8(const uint8_t *at, Py_ssize_t size);

/* Set the exception for a value that can't be read. */
void *unreadable(Py_ssize_t column, Py_ssize_t offset);

extern const int64_t POWERS_OF_TEN[19];

int load_datetime(void);

#endif
