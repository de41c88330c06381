/* Values of TiDB's rows. */
#include "bytes.h"
#include "calendar.h"
#include "tidb.h"

#include <string.h>

/* Read an integer of one, two, four or eight bytes. */
static int get_number(const Cell *cell, int is_signed, uint64_t *number)
{
    Py_ssize_t size = cell->size;
    if (cell->form == NUMBER) {
        *number = cell->number;
        return 0;
    }
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return -1;
    *number = little_endian(cell->at, (int)size);
    if (is_signed)
        *number = (uint64_t)sign_extended(*number, (int)size);
    return 0;
}

/* A positive number and 0 have the sign bit set, a negative one has all bits inverted. */
static Outcome read_float(const Cell *cell, Value *value)
{
    if (cell->form != CELL || cell->size != 8)
        return IRREGULAR;
    uint64_t bits = big_endian(cell->at, 8);
    double real;
    memcpy(&real, &bits, 8);
    if (real != real)
        return IRREGULAR;
    if (real <= 0.0)
        value->real = -real;
    else {
        bits = ~bits;
        memcpy(&value->real, &bits, 8);
    }
    return REGULAR;
}

static Outcome read_words(const Column *column, const Cell *cell, Value *value)
{
    int digits = column->digits, scale = column->scale;
    if (cell->form != CELL || cell->size != 2 + decimal_bytes(digits, scale) || cell->at[0] != digits ||
        cell->at[1] != scale)
        return IRREGULAR;
    return read_packed_decimal(cell->at + 2, digits, scale, &value->decimal);
}

static int shown_micros(const Column *column, int micros)
{
    return micros - micros % (int)POWERS_OF_TEN[6 - column->scale];
}

/* The zero date is packed as 0. */
static Outcome read_moment(const Column *column, uint64_t packed, Value *value)
{
    int months = (int)(packed >> 46);
    value->year = months / 13;
    value->month = months % 13;
    value->day = packed >> 41 & 31;
    value->hour = packed >> 36 & 31;
    value->minute = packed >> 30 & 63;
    value->second = packed >> 24 & 63;
    value->micros = (int)(packed & 0xFFFFFF);
    if (!is_date(value->year, value->month, value->day))
        return IRREGULAR;
    if (column->output == DATE)
        return REGULAR;
    if (value->hour > 23 || value->minute > 59 || value->second > 59 || value->micros > 999999)
        return IRREGULAR;
    value->micros = shown_micros(column, value->micros);
    if (column->output == TIMESTAMP) {
        int64_t hours = days_of(value->year, value->month, value->day) * 24 + value->hour;
        int64_t seconds = (hours * 60 + value->minute) * 60 + value->second;
        value->number = seconds * 1000000 + value->micros;
        return seconds < 0 ? IRREGULAR : REGULAR;
    }
    return REGULAR;
}

static Outcome read_duration(const Column *column, int64_t nanoseconds, Value *value)
{
    int64_t micros = nanoseconds / 1000;
    value->number = micros - micros % POWERS_OF_TEN[6 - column->scale];
    int64_t seconds = value->number / 1000000;
    return seconds == (int)seconds ? REGULAR : IRREGULAR;
}

static Outcome read_number(const Column *column, const Cell *cell, Value *value)
{
    uint64_t number;
    int is_signed = column->input == TIDB_INT || column->input == TIDB_DURATION;
    if (get_number(cell, is_signed, &number) < 0)
        return IRREGULAR;
    if (cell->form == NUMBER) { /* `reader` takes cells */
        for (int i = 0; i < 8; i++)
            value->made[i] = (uint8_t)(number >> 8 * i);
        value->stored = value->made;
        value->size = 8;
    }
    if (column->input == TIDB_MOMENT)
        return read_moment(column, number, value);
    if (column->input == TIDB_DURATION)
        return read_duration(column, (int64_t)number, value);
    value->number = (int64_t)number;
    return REGULAR;
}

Outcome read_cell(const Column *column, const Cell *cell, Value *value)
{
    value->stored = cell->at;
    value->size = cell->size;
    switch (column->input) {
    case TIDB_FLOAT:
        return read_float(cell, value);
    case TIDB_DECIMAL:
        return read_words(column, cell, value);
    case TIDB_BYTES:
    case TIDB_JSON:
        return REGULAR;
    default:
        return read_number(column, cell, value);
    }
}
