/* Checksums that TiDB appends to rows of format 2: CRC32 over the columns, over the row and its key, or over
   the row and the key's handle. */
#include "bytes.h"
#include "crc32.h"
#include "tidb.h"

#include <string.h>

enum { OVER_COLUMNS, OVER_KEY, OVER_HANDLE, VERSION_BITS = 7, SECOND_CHECKSUM = 8 };

static void add(uint32_t *checksum, const void *at, size_t size)
{
    *checksum = crc32_of(*checksum, at, size);
}

/* --- checksums over columns ---------------------------------------------------------------------------- */

static void add_number(uint32_t *checksum, uint64_t number, int size)
{
    uint8_t bytes[8];
    for (int i = 0; i < size; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    add(checksum, bytes, (size_t)size);
}

static void add_text(uint32_t *checksum, const void *text, size_t size)
{
    add_number(checksum, size, 4);
    add(checksum, text, size);
}

/* Return the digits of a fraction's microseconds that a scale shows. */
static int shown(int micros, int scale)
{
    return micros / (int)POWERS_OF_TEN[6 - scale];
}

static int print_decimal(char *text, const Column *column, int128 decimal)
{
    char digits[MAX_DIGITS + 2]; /* the last ones first */
    int count = 0, size = 0, scale = column->scale;
    unsigned __int128 rest = decimal < 0 ? -(unsigned __int128)decimal : (unsigned __int128)decimal;
    for (; rest || count <= scale; rest /= 10)
        digits[count++] = (char)('0' + (int)(rest % 10));
    if (decimal < 0)
        text[size++] = '-';
    while (count--) {
        text[size++] = digits[count];
        if (count == scale && scale)
            text[size++] = '.';
    }
    return size;
}

static int print_moment(char *text, size_t room, const Column *column, const Value *value)
{
    int size = snprintf(text, room, "%04d-%02d-%02d", value->year, value->month, value->day);
    if (column->output == DATE)
        return size;
    size += snprintf(text + size, room - (size_t)size, " %02d:%02d:%02d", value->hour, value->minute,
                     value->second);
    if (column->scale)
        size += snprintf(text + size, room - (size_t)size, ".%0*d", column->scale,
                         shown(value->micros, column->scale));
    return size;
}

static int print_duration(char *text, size_t room, const Column *column, int64_t micros)
{
    int64_t positive = micros < 0 ? -micros : micros, seconds = positive / 1000000;
    int size = snprintf(text, room, "%s%02lld:%02d:%02d", micros < 0 ? "-" : "", (long long)(seconds / 3600),
                        (int)(seconds / 60 % 60), (int)(seconds % 60));
    if (column->scale)
        size += snprintf(text + size, room - (size_t)size, ".%0*d", column->scale,
                         shown((int)(positive % 1000000), column->scale));
    return size;
}

/* Add a column's part as an INSERT does; -1 for a value that Python is to look at. */
static int add_cell(uint32_t *checksum, const Column *column, const Cell *cell)
{
    Value value;
    char text[64];
    uint64_t bits;
    if (column->input == TIDB_JSON || read_cell(column, cell, &value) != REGULAR)
        return -1;
    switch (column->input) {
    case TIDB_FLOAT:
        memcpy(&bits, &value.real, 8);
        add_number(checksum, bits, 8);
        return 0;
    case TIDB_DECIMAL:
        add_text(checksum, text, (size_t)print_decimal(text, column, value.decimal));
        return 0;
    case TIDB_MOMENT:
        if (column->output == DATE && (value.hour || value.minute || value.second || value.micros))
            return -1;
        add_text(checksum, text, (size_t)print_moment(text, sizeof text, column, &value));
        return 0;
    case TIDB_DURATION:
        add_text(checksum, text, (size_t)print_duration(text, sizeof text, column, value.number));
        return 0;
    case TIDB_BYTES:
        add_text(checksum, value.stored, (size_t)value.size);
        return 0;
    default:
        add_number(checksum, (uint64_t)value.number, 8);
        return 0;
    }
}

/* True if the row has one of the checksums over its columns. */
static int has_columns(const Rows *rows, Bytes key, uint32_t stored, uint32_t second)
{
    const TidbLayout *layout = rows->layout;
    uint32_t checksum = 0;
    if (rows->has_others)
        return 0;
    for (Py_ssize_t nth = 0; nth < layout->layout->count; nth++) {
        Py_ssize_t i = layout->by_id[nth].column;
        const Origin *origin = &layout->origins[i];
        int is_in_key = origin->role == IN_HANDLE ||
                        (origin->part >= 0 && !layout->parts[origin->part].is_prefix);
        if (origin->role == IN_HANDLE && !has_handle(key))
            return 0;
        if (is_in_key && rows->places[i] == NULL_PLACE)
            return 0;
        if ((rows->places[i] >= 0 || is_in_key) &&
            add_cell(&checksum, &layout->layout->columns[i], &rows->cells[i]) < 0)
            return 0;
    }
    return checksum == stored || checksum == second;
}

/* --- rows ---------------------------------------------------------------------------------------------- */

int has_checksum(Rows *rows, Bytes key, Bytes value, const uint8_t *at)
{
    Py_ssize_t size = value.end - at;
    if (size < 5 || size != (*at & SECOND_CHECKSUM ? 9 : 5))
        return 0;
    if (!rows->layout->verifies)
        return 1;
    uint32_t stored = (uint32_t)little_endian(at + 1, 4), second = stored, of_row = 0;
    int version = *at & VERSION_BITS;
    if (version == OVER_COLUMNS) {
        if (size == 9)
            second = (uint32_t)little_endian(at + 5, 4);
        if (rows->layout->part_count && !rows->has_parts && find_parts(rows, key) < 0)
            return 0;
        return has_columns(rows, key, stored, second);
    }
    if (version > OVER_HANDLE)
        return 0;
    add(&of_row, value.at, (size_t)(at + 1 - value.at));
    uint32_t over_key = of_row, over_handle = of_row;
    add(&over_key, key.at, (size_t)(key.end - key.at));
    if (key.end - key.at > HANDLE_AT)
        add(&over_handle, key.at + HANDLE_AT, (size_t)(key.end - key.at - HANDLE_AT));
    /* A TiDB between v8.3 and v8.4 wrote 1 for handles. */
    return stored == over_handle || (version == OVER_KEY && stored == over_key);
}
