/* Values of a row of the binary protocol: numbers have a fixed number of bytes, any other value has its length
   before it, in 1 byte below 251 or in more. What isn't in its usual form is IRREGULAR. */
#include "bytes.h"
#include "calendar.h"
#include "value.h"

#include <string.h>

#define NO_LENGTH 0xFB   /* the first byte that isn't a length itself */
#define MOST_TIME_DAYS 34 /* a TIME has up to 838 hours */

int is_utf8(const uint8_t *at, Py_ssize_t size)
{
    const uint8_t *end = at + size;
    while (at < end) {
        uint64_t eight;
        if (end - at >= 8 && (memcpy(&eight, at, 8), !(eight & 0x8080808080808080ull))) {
            at += 8;
            continue;
        }
        uint8_t first = *at++;
        if (first < 0x80)
            continue;
        int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
        if (first < 0xC2 || first > 0xF4 || end - at < more)
            return 0;
        uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80; /* below: overlong */
        uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;  /* above: no character */
        if (*at < least || *at > most)
            return 0;
        for (at++; --more; at++)
            if ((*at & 0xC0) != 0x80)
                return 0;
    }
    return 1;
}

/* Cut a value that has its length before it. */
static Outcome cut_counted(const uint8_t **at, const uint8_t *end, Value *value)
{
    if (*at >= end)
        return CUT;
    uint64_t size = *(*at)++;
    if (size >= NO_LENGTH) {
        int width = size == 0xFC ? 2 : size == 0xFD ? 3 : size == 0xFE ? 8 : 0;
        if (!width || end - *at < width)
            return CUT;
        size = little_endian(*at, width);
        *at += width;
    }
    if ((uint64_t)(end - *at) < size)
        return CUT;
    value->stored = *at;
    value->size = (Py_ssize_t)size;
    *at += size;
    return REGULAR;
}

static Outcome read_decimal(const Column *column, const uint8_t *at, const uint8_t *end, Value *value)
{
    int is_negative = at < end && *at == '-', is_after_point = 0, count = 0, scale = 0;
    at += is_negative;
    int128 number = 0;
    for (; at < end; at++) {
        if (*at == '.' && !is_after_point && count) {
            is_after_point = 1;
            continue;
        }
        if (*at < '0' || *at > '9' || ++count > MAX_DIGITS)
            return IRREGULAR;
        number = number * 10 + (*at - '0');
        scale += is_after_point;
    }
    if (!count || scale != column->scale || is_after_point != (scale > 0) || (is_negative && !number))
        return IRREGULAR;
    value->decimal = is_negative ? -number : number;
    return REGULAR;
}

static int has_day(const uint8_t *at, Value *value)
{
    value->year = (int)little_endian(at, 2);
    value->month = at[2];
    value->day = at[3];
    return is_date(value->year, value->month, value->day);
}

static int has_clock(const uint8_t *at, const uint8_t *micros, Value *value)
{
    value->hour = at[0];
    value->minute = at[1];
    value->second = at[2];
    value->micros = micros == NULL ? 0 : (int)little_endian(micros, 4);
    return value->hour < 24 && value->minute < 60 && value->second < 60 && value->micros >= 0 &&
           value->micros < 1000000;
}

/* A date, then hour, minute and second, then microseconds: what is 0 at the end is left out. */
static Outcome read_moment(const Column *column, const uint8_t *at, Value *value)
{
    static const uint8_t midnight[3];
    Py_ssize_t size = value->size;
    if (size != 4 && size != 7 && size != 11)
        return IRREGULAR;
    if (!has_day(at, value) || !has_clock(size > 4 ? at + 4 : midnight, size > 7 ? at + 7 : NULL, value))
        return IRREGULAR;
    if (column->output == TIMESTAMP) {
        if (value->year < 1970)
            return IRREGULAR;
        int64_t hours = days_of(value->year, value->month, value->day) * 24 + value->hour;
        value->number = ((hours * 60 + value->minute) * 60 + value->second) * 1000000 + value->micros;
    }
    return REGULAR;
}

/* The sign, 4 bytes of days, hour, minute and second, then microseconds. */
static Outcome read_time(const uint8_t *at, Value *value)
{
    Py_ssize_t size = value->size;
    value->number = 0;
    if (!size)
        return REGULAR;
    if ((size != 8 && size != 12) || at[0] > 1 || !has_clock(at + 5, size > 8 ? at + 8 : NULL, value))
        return IRREGULAR;
    int64_t days = (int64_t)little_endian(at + 1, 4);
    if (days > MOST_TIME_DAYS)
        return IRREGULAR;
    int64_t seconds = ((days * 24 + value->hour) * 60 + value->minute) * 60 + value->second;
    int64_t micros = seconds * 1000000 + value->micros;
    value->number = at[0] ? -micros : micros;
    return REGULAR;
}

Outcome read_sent_value(const Column *column, const uint8_t **at, const uint8_t *end, Value *value)
{
    switch (column->input) {
    case LITTLE_ENDIAN_INT:
    case FLOAT_BYTES:
    case DOUBLE_BYTES:
        return read_image_value(column, at, end, value);
    }
    if (cut_counted(at, end, value) == CUT)
        return CUT;
    const uint8_t *stored = value->stored;
    Py_ssize_t size = value->size;
    switch (column->input) {
    case SENT_DECIMAL:
        return read_decimal(column, stored, stored + size, value);
    case SENT_DATE:
        return size == 4 && has_day(stored, value) ? REGULAR : IRREGULAR;
    case SENT_MOMENT:
        return read_moment(column, stored, value);
    case SENT_TIME:
        return read_time(stored, value);
    case SENT_BITS:
        value->number = size > 8 ? 0 : (int64_t)big_endian(stored, (int)size);
        return size > 8 ? IRREGULAR : REGULAR;
    case SENT_BYTES:
        return REGULAR;
    default:
        return IRREGULAR;
    }
}
