/* Values of the row images of MySQL's and MariaDB's binlog. */
#include "bytes.h"
#include "calendar.h"
#include "value.h"

#include <string.h>

static const uint8_t WORD_BYTES[10] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4};
static const int FRACTION_MICROS[4] = {1, 10000, 100, 1};

const int64_t POWERS_OF_TEN[19] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000,
    1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000,
    100000000000000000, 1000000000000000000};

/* A decimal is words of nine digits on both sides of the point, with the shorter words first and last. Its
   first bit is set for positive numbers; a negative number has all bits inverted. */
int decimal_bytes(int digits, int scale)
{
    int whole = digits - scale;
    return WORD_BYTES[whole % 9] + whole / 9 * 4 + scale / 9 * 4 + WORD_BYTES[scale % 9];
}

int image_bytes(const Column *column)
{
    switch (column->input) {
    case YEAR_BYTE:
        return 1;
    case PACKED_DATE:
        return 3;
    case FLOAT_BYTES:
    case UNIX_SECONDS:
        return 4;
    case DOUBLE_BYTES:
        return 8;
    case PACKED_DECIMAL:
        return decimal_bytes(column->digits, column->scale);
    case PACKED_TIME:
        return 3 + (column->scale + 1) / 2;
    case PACKED_TIMESTAMP:
        return 4 + (column->scale + 1) / 2;
    case PACKED_DATETIME:
        return 5 + (column->scale + 1) / 2;
    default:
        return column->size;
    }
}

Outcome read_packed_decimal(const uint8_t *at, int digits, int scale, int128 *decimal)
{
    int whole = digits - scale;
    int words = !!(whole % 9) + whole / 9 + scale / 9 + !!(scale % 9);
    uint64_t inverted = 0;
    int128 total = 0;
    for (int k = 0; k < words; k++) {
        int word_digits = k == 0 && whole % 9 ? whole % 9 : k == words - 1 && scale % 9 ? scale % 9 : 9;
        int size = WORD_BYTES[word_digits];
        uint64_t word = big_endian(at, size);
        if (k == 0) {
            uint64_t sign = 1ull << (8 * size - 1);
            if (!(word & sign))
                inverted = ~0ull;
            word ^= sign;
        }
        word = (word ^ inverted) & ((1ull << 8 * size) - 1);
        if (word >= (uint64_t)POWERS_OF_TEN[word_digits])
            return IRREGULAR;
        total = total * POWERS_OF_TEN[word_digits] + word;
        at += size;
    }
    *decimal = inverted ? -total : total;
    return REGULAR;
}

static Outcome read_datetime(const uint8_t *at, int fraction_bytes, Value *value)
{
    uint64_t packed = big_endian(at, 5);
    if (packed < 1ull << 39)
        return IRREGULAR;
    int months = (int)(packed >> 22) - (1 << 17), clock = packed & 0x1FFFF;
    value->year = months / 13;
    value->month = months % 13;
    value->day = packed >> 17 & 31;
    value->hour = clock >> 12;
    value->minute = clock >> 6 & 63;
    value->second = clock & 63;
    value->micros = (int)big_endian(at + 5, fraction_bytes) * FRACTION_MICROS[fraction_bytes];
    return is_date(value->year, value->month, value->day) && value->hour < 24 && value->minute < 60 &&
                   value->second < 60 && value->micros < 1000000
               ? REGULAR
               : IRREGULAR;
}

static Outcome read_time(const uint8_t *at, int fraction_bytes, Value *value)
{
    int size = 3 + fraction_bytes;
    int64_t packed = (int64_t)big_endian(at, size) - (1ll << (8 * size - 1));
    int64_t magnitude = packed < 0 ? -packed : packed;
    int64_t clock = magnitude >> 8 * fraction_bytes;
    int64_t minutes = clock >> 6 & 63, seconds = clock & 63;
    int64_t micros = (magnitude & ((1ll << 8 * fraction_bytes) - 1)) * FRACTION_MICROS[fraction_bytes];
    if (minutes > 59 || seconds > 59 || micros > 999999)
        return IRREGULAR;
    int64_t total = (((clock >> 12) * 60 + minutes) * 60 + seconds) * 1000000 + micros;
    value->number = packed < 0 ? -total : total;
    return REGULAR;
}

Outcome skip_image_value(const Column *column, const uint8_t **at, const uint8_t *end, Value *value)
{
    uint64_t size = (uint64_t)column->fixed;
    if ((uint64_t)(end - *at) < size)
        return CUT;
    if (column->input == COUNTED) {
        const uint8_t *length = *at;
        *at += size;
        size = little_endian(length, (int)size);
        if ((uint64_t)(end - *at) < size)
            return CUT;
    }
    value->stored = *at;
    value->size = (Py_ssize_t)size;
    *at += size;
    return REGULAR;
}

Outcome read_image_value(const Column *column, const uint8_t **at, const uint8_t *end, Value *value)
{
    if (skip_image_value(column, at, end, value) == CUT)
        return CUT;
    const uint8_t *stored = value->stored;
    Py_ssize_t size = value->size;
    switch (column->input) {
    case LITTLE_ENDIAN_INT: {
        uint64_t number = little_endian(stored, (int)size);
        value->number = column->output == INT ? sign_extended(number, (int)size) : (int64_t)number;
        return REGULAR;
    }
    case BIG_ENDIAN_INT:
        value->number = (int64_t)big_endian(stored, (int)size);
        return REGULAR;
    case YEAR_BYTE:
        value->number = *stored ? 1900 + *stored : 0;
        return REGULAR;
    case FLOAT_BYTES: {
        uint32_t bits = (uint32_t)little_endian(stored, 4);
        float real;
        memcpy(&real, &bits, 4);
        value->real = real;
        return REGULAR;
    }
    case DOUBLE_BYTES: {
        uint64_t bits = little_endian(stored, 8);
        memcpy(&value->real, &bits, 8);
        return REGULAR;
    }
    case PACKED_DECIMAL:
        return read_packed_decimal(stored, column->digits, column->scale, &value->decimal);
    case PACKED_DATE: {
        uint32_t packed = (uint32_t)little_endian(stored, 3);
        value->year = packed >> 9;
        value->month = packed >> 5 & 15;
        value->day = packed & 31;
        return is_date(value->year, value->month, value->day) ? REGULAR : IRREGULAR;
    }
    case PACKED_DATETIME:
        return read_datetime(stored, (int)size - 5, value);
    case PACKED_TIMESTAMP:
    case UNIX_SECONDS: {
        int is_big = column->input == PACKED_TIMESTAMP, fraction_bytes = (int)size - 4;
        int64_t seconds = (int64_t)(is_big ? big_endian(stored, 4) : little_endian(stored, 4));
        int64_t micros = (int64_t)big_endian(stored + 4, fraction_bytes) * FRACTION_MICROS[fraction_bytes];
        value->number = seconds * 1000000 + micros;
        return seconds ? REGULAR : IRREGULAR;
    }
    case PACKED_TIME:
        return read_time(stored, (int)size - 3, value);
    case COUNTED:
        return REGULAR;
    default:
        return IRREGULAR;
    }
}
