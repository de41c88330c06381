/* Values of the text protocol, as the server prints them. What isn't in its usual form is IRREGULAR. */
#include "calendar.h"
#include "value.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DOUBLE_TEXT 64

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

/* Read up to `most` digits; -1 if there is none or there are more. */
static int64_t digits(const uint8_t **at, const uint8_t *end, int least, int most)
{
    const uint8_t *start = *at;
    int64_t number = 0;
    while (*at < end && **at >= '0' && **at <= '9') {
        if (*at - start == most)
            return -1;
        number = number * 10 + *(*at)++ - '0';
    }
    return *at - start < least ? -1 : number;
}

static int skip_digits(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *start = *at;
    while (*at < end && **at >= '0' && **at <= '9')
        ++*at;
    return *at > start;
}

static int accept(const uint8_t **at, const uint8_t *end, char character)
{
    if (*at == end || **at != character)
        return 0;
    ++*at;
    return 1;
}

static Outcome read_int(const Column *column, const uint8_t *at, const uint8_t *end, Value *value)
{
    int is_negative = accept(&at, end, '-');
    uint64_t number = 0;
    if (at == end || end - at > 20)
        return IRREGULAR;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return IRREGULAR;
    }
    if (column->output == UINT ? is_negative : number > (uint64_t)INT64_MAX)
        return IRREGULAR;
    value->number = is_negative ? -(int64_t)number : (int64_t)number;
    return REGULAR;
}

static Outcome read_double(const uint8_t *at, const uint8_t *end, Value *value)
{
    char text[MAX_DOUBLE_TEXT];
    if (end - at >= MAX_DOUBLE_TEXT)
        return IRREGULAR;
    memcpy(text, at, (size_t)(end - at));
    text[end - at] = 0;
    accept(&at, end, '-');
    if (!skip_digits(&at, end))
        return IRREGULAR;
    if (accept(&at, end, '.'))
        skip_digits(&at, end);
    if (accept(&at, end, 'e')) {
        if (!accept(&at, end, '-'))
            accept(&at, end, '+');
        if (!skip_digits(&at, end))
            return IRREGULAR;
    }
    char *stop;
    value->real = strtod(text, &stop);
    return at == end && *stop == 0 ? REGULAR : IRREGULAR;
}

static Outcome read_decimal(const Column *column, const uint8_t *at, const uint8_t *end, Value *value)
{
    int is_negative = accept(&at, end, '-'), is_after_point = 0, count = 0, scale = 0;
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

static int read_day(const uint8_t **at, const uint8_t *end, Value *value)
{
    value->year = (int)digits(at, end, 4, 4);
    if (!accept(at, end, '-'))
        return 0;
    value->month = (int)digits(at, end, 2, 2);
    if (!accept(at, end, '-'))
        return 0;
    value->day = (int)digits(at, end, 2, 2);
    return is_date(value->year, value->month, value->day);
}

/* Read minutes, seconds and a fraction, up to the end. */
static int read_clock(const uint8_t *at, const uint8_t *end, Value *value)
{
    if (!accept(&at, end, ':') || (value->minute = (int)digits(&at, end, 2, 2)) < 0)
        return 0;
    if (!accept(&at, end, ':') || (value->second = (int)digits(&at, end, 2, 2)) < 0)
        return 0;
    value->micros = 0;
    if (accept(&at, end, '.')) {
        int places = (int)(end - at);
        int64_t fraction = digits(&at, end, 1, 6);
        if (fraction < 0)
            return 0;
        value->micros = (int)(fraction * POWERS_OF_TEN[6 - (places < 6 ? places : 6)]);
    }
    return at == end && value->minute < 60 && value->second < 60;
}

static Outcome read_moment(const Column *column, const uint8_t *at, const uint8_t *end, Value *value)
{
    if (!read_day(&at, end, value) || !accept(&at, end, ' '))
        return IRREGULAR;
    value->hour = (int)digits(&at, end, 2, 2);
    if (value->hour < 0 || value->hour > 23 || !read_clock(at, end, value))
        return IRREGULAR;
    if (column->output == TIMESTAMP) {
        if (value->year < 1970)
            return IRREGULAR;
        int64_t hours = days_of(value->year, value->month, value->day) * 24 + value->hour;
        value->number = ((hours * 60 + value->minute) * 60 + value->second) * 1000000 + value->micros;
    }
    return REGULAR;
}

static Outcome read_time(const uint8_t *at, const uint8_t *end, Value *value)
{
    int is_negative = accept(&at, end, '-');
    int64_t hours = digits(&at, end, 2, 3);
    if (hours < 0 || !read_clock(at, end, value))
        return IRREGULAR;
    int64_t micros = ((hours * 60 + value->minute) * 60 + value->second) * 1000000 + value->micros;
    value->number = is_negative ? -micros : micros;
    return REGULAR;
}

Outcome read_printed_value(const Column *column, Value *value)
{
    const uint8_t *at = value->stored, *end = at + value->size;
    switch (column->input) {
    case PRINTED_INT:
        return read_int(column, at, end, value);
    case PRINTED_DOUBLE:
        return read_double(at, end, value);
    case PRINTED_DECIMAL:
        return read_decimal(column, at, end, value);
    case PRINTED_DATE:
        return read_day(&at, end, value) && at == end ? REGULAR : IRREGULAR;
    case PRINTED_DATETIME:
        return read_moment(column, at, end, value);
    case PRINTED_TIME:
        return read_time(at, end, value);
    case PRINTED_BYTES:
        return REGULAR;
    default:
        return IRREGULAR;
    }
}

int has_point(void)
{
    return strcmp(localeconv()->decimal_point, ".") == 0;
}
