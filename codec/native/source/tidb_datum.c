/* Datums: the elements of TiDB's rows of format 1, and of the keys of clustered tables. */
#include "bytes.h"
#include "tidb.h"

#include <stdlib.h>

static const uint64_t SIGN = 1ull << 63;

int row_flag(const Column *column)
{
    switch (column->input) {
    case TIDB_INT:
    case TIDB_DURATION:
        return FLAG_VARINT;
    case TIDB_UINT:
    case TIDB_MOMENT:
        return FLAG_UVARINT;
    case TIDB_FLOAT:
        return FLAG_FLOAT;
    case TIDB_DECIMAL:
        return FLAG_DECIMAL;
    case TIDB_JSON:
        return FLAG_JSON;
    default:
        return FLAG_COMPACT_BYTES;
    }
}

int key_flag(const Column *column)
{
    switch (column->input) {
    case TIDB_INT:
        return FLAG_INT;
    case TIDB_DURATION:
        return FLAG_DURATION;
    case TIDB_UINT:
    case TIDB_MOMENT:
        return FLAG_UINT;
    case TIDB_BYTES:
        return FLAG_BYTES;
    default:
        return row_flag(column);
    }
}

/* Seven bits a byte, the low ones first; the high bit is set if more follow. */
static int next_uvarint(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; shift < 70 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1)
            return -1;
        *number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return 0;
    }
    return -1;
}

static int next_varint(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
    if (next_uvarint(at, end, number) < 0)
        return -1;
    *number = *number & 1 ? ~(*number >> 1) : *number >> 1;
    return 0;
}

static int64_t json_bytes(const uint8_t *at, const uint8_t *end)
{
    const uint8_t *begun = at;
    uint64_t size;
    if (at == end)
        return -1;
    switch (*at++) {
    case 0x01:
    case 0x03:
        return end - at < 8 ? -1 : 1 + (int64_t)little_endian(at + 4, 4);
    case 0x04:
        return 2;
    case 0x09:
    case 0x0A:
    case 0x0B:
    case 0x0E:
    case 0x0F:
    case 0x10:
        return 9;
    case 0x11:
        return 13;
    case 0x0D:
        if (at++ == end)
            return -1; /* else as below */
        /* fallthrough */
    case 0x0C:
        if (next_uvarint(&at, end, &size) < 0 || size > (uint64_t)(end - at))
            return -1;
        return at - begun + (int64_t)size;
    default:
        return -1;
    }
}

static int64_t datum_bytes(int flag, const uint8_t *at, const uint8_t *end)
{
    if (flag == FLAG_JSON)
        return json_bytes(at, end);
    if (flag != FLAG_DECIMAL)
        return 8;
    /* Nine words are more than a column has. */
    return end - at < 2 || at[0] < at[1] || at[0] > 81 ? -1 : 2 + decimal_bytes(at[0], at[1]);
}

int next_datum(const uint8_t **at, const uint8_t *end, int *flag, Cell *cell)
{
    if (*at >= end)
        return -1;
    *flag = *(*at)++;
    *cell = (Cell){.form = CELL};
    switch (*flag) {
    case FLAG_NULL:
        cell->form = NOTHING;
        return 0;
    case FLAG_VARINT:
        cell->form = NUMBER;
        return next_varint(at, end, &cell->number);
    case FLAG_UVARINT:
        cell->form = NUMBER;
        return next_uvarint(at, end, &cell->number);
    case FLAG_COMPACT_BYTES: {
        uint64_t size;
        if (next_varint(at, end, &size) < 0 || size > (uint64_t)(end - *at))
            return -1;
        cell->size = (Py_ssize_t)size;
        break;
    }
    case FLAG_INT:
    case FLAG_UINT:
    case FLAG_DURATION:
    case FLAG_FLOAT:
    case FLAG_DECIMAL:
    case FLAG_JSON: {
        int64_t size = datum_bytes(*flag, *at, end);
        if (size < 0 || size > end - *at)
            return -1;
        cell->size = (Py_ssize_t)size;
        if (*flag == FLAG_INT || *flag == FLAG_UINT || *flag == FLAG_DURATION) {
            cell->form = NUMBER;
            cell->number = big_endian(*at, 8) ^ (*flag == FLAG_UINT ? 0 : SIGN);
        }
        break;
    }
    default:
        return -1;
    }
    cell->at = *at;
    *at += cell->size;
    return 0;
}

/* Groups of eight bytes, each followed by 0xFF less the zeros that pad it. */
static int next_letters(const uint8_t **at, const uint8_t *end, uint8_t **into, Cell *cell)
{
    *cell = (Cell){.form = CELL, .at = *into};
    for (int padding = 0; !padding; *at += 9) {
        if (end - *at < 9)
            return -1;
        padding = 0xFF - (*at)[8];
        if (padding > 8)
            return -1;
        for (int i = 8 - padding; i < 8; i++)
            if ((*at)[i])
                return -1;
        for (int i = 0; i < 8 - padding; i++)
            *(*into)++ = (*at)[i];
    }
    cell->size = *into - cell->at;
    return 0;
}

enum { PREFIX_BYTES = 11 }; /* of a row's key: t, the table's id, _r */

int find_parts(Rows *rows, Bytes key)
{
    const TidbLayout *layout = rows->layout;
    const uint8_t *at = key.at, *end = key.end;
    size_t size = (size_t)(end - at);
    if (size <= PREFIX_BYTES + 8 || at[0] != 't' || at[9] != '_' || at[10] != 'r')
        return -1;
    if (rows->letters_room < size) {
        free(rows->letters);
        rows->letters_room = 2 * size;
        rows->letters = malloc(rows->letters_room);
        if (rows->letters == NULL) {
            rows->letters_room = 0;
            return -1;
        }
    }
    uint8_t *into = rows->letters; /* the letters are fewer than the key's bytes */
    at += PREFIX_BYTES;
    for (Py_ssize_t i = 0; i < layout->part_count; i++) {
        int wanted = key_flag(&layout->layout->columns[layout->parts[i].column]), flag = FLAG_BYTES;
        if (at < end && *at == FLAG_BYTES) {
            at++;
            if (next_letters(&at, end, &into, &rows->parts[i]) < 0)
                return -1;
        } else if (next_datum(&at, end, &flag, &rows->parts[i]) < 0)
            return -1;
        if (flag != wanted)
            return -1;
    }
    rows->has_parts = 1;
    return at == end ? 0 : -1;
}
