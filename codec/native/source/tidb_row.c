/* The columns of a row of TiDB, by its head (format 2) or by its datums (format 1). */
#include "bytes.h"
#include "tidb.h"

#include <stdlib.h>
#include <string.h>

enum {
    FORMAT_2 = 0x80,
    BIG = 1, /* ids and ends have four bytes; otherwise one and two */
    CHECKSUM = 2,
    HEAD_BYTES = 6
};

int open_rows(Rows *rows, const TidbLayout *layout)
{
    size_t count = (size_t)layout->layout->count + 1;
    *rows = (Rows){.layout = layout};
    rows->cells = calloc(count, sizeof *rows->cells);
    rows->places = calloc(count, sizeof *rows->places);
    rows->parts = calloc((size_t)layout->part_count + 1, sizeof *rows->parts);
    return rows->cells == NULL || rows->places == NULL || rows->parts == NULL ? -1 : 0;
}

void close_rows(Rows *rows)
{
    free(rows->cells);
    free(rows->places);
    free(rows->parts);
    free(rows->head);
    free(rows->letters);
}

/* Return the number of the column with the id, or -1. `guess` is where it is in the order of the ids, mostly:
   a row has them in this order. */
static Py_ssize_t column_of(const TidbLayout *layout, int64_t id, Py_ssize_t *guess)
{
    const ById *by_id = layout->by_id;
    Py_ssize_t low = 0, high = layout->layout->count;
    if (*guess >= high || by_id[*guess].id != id) {
        while (low < high) {
            Py_ssize_t middle = low + (high - low) / 2;
            if (by_id[middle].id < id)
                low = middle + 1;
            else
                high = middle;
        }
        *guess = low;
        if (low == layout->layout->count || by_id[low].id != id)
            return -1;
    }
    return by_id[(*guess)++].column;
}

/* Find a column that the row lacks. */
static int find_absent(Rows *rows, Py_ssize_t i, Bytes key)
{
    const Origin *origin = &rows->layout->origins[i];
    Cell *cell = &rows->cells[i];
    if (origin->role == REQUIRED)
        return -1;
    if (origin->role == IN_HANDLE) {
        if (!has_handle(key))
            return -1;
        *cell = (Cell){.form = NUMBER, .number = big_endian(key.at + HANDLE_AT, 8) ^ 1ull << 63};
        return 0;
    }
    if (origin->part >= 0) {
        if (rows->layout->parts[origin->part].is_prefix || (!rows->has_parts && find_parts(rows, key) < 0))
            return -1;
        *cell = rows->parts[origin->part];
        return 0;
    }
    if (origin->initial == NULL)
        return -1;
    if (origin->initial == Py_None)
        *cell = (Cell){.form = NOTHING};
    else
        *cell = (Cell){.form = CELL,
                       .at = (const uint8_t *)PyBytes_AS_STRING(origin->initial),
                       .size = PyBytes_GET_SIZE(origin->initial)};
    return 0;
}

/* --- format 2 ------------------------------------------------------------------------------------------ */

static int keep_head(Rows *rows, const uint8_t *head, size_t size, int count, int all, int is_big)
{
    const TidbLayout *layout = rows->layout;
    if (rows->head_room < size) {
        free(rows->head);
        rows->head_room = 2 * size;
        rows->head = malloc(rows->head_room);
        if (rows->head == NULL) {
            rows->head_room = rows->head_bytes = 0;
            return -1;
        }
    }
    memcpy(rows->head, head, size);
    rows->head_bytes = size;
    for (Py_ssize_t i = 0; i < layout->layout->count; i++)
        rows->places[i] = NO_PLACE;
    Py_ssize_t guess = 0;
    for (int j = all - 1; j >= count; j--) {
        int64_t id = is_big ? (int64_t)little_endian(head + HEAD_BYTES + 4 * j, 4) : head[HEAD_BYTES + j];
        Py_ssize_t i = column_of(layout, id, &guess);
        if (i >= 0 && layout->origins[i].role != IN_HANDLE)
            rows->places[i] = NULL_PLACE;
    }
    guess = 0;
    rows->has_others = 0;
    for (int j = 0; j < count; j++) {
        int64_t id = is_big ? (int64_t)little_endian(head + HEAD_BYTES + 4 * j, 4) : head[HEAD_BYTES + j];
        Py_ssize_t i = column_of(layout, id, &guess);
        if (i >= 0)
            rows->places[i] = j;
        else
            rows->has_others = 1;
    }
    return 0;
}

static int find_by_head(Rows *rows, Bytes key, Bytes value)
{
    const uint8_t *head = value.at;
    size_t size = (size_t)(value.end - head);
    if (size < HEAD_BYTES || head[1] & ~(BIG | CHECKSUM))
        return -1;
    int is_big = head[1] & BIG, end_bytes = is_big ? 4 : 2;
    int count = (int)little_endian(head + 2, 2), all = count + (int)little_endian(head + 4, 2);
    size_t head_bytes = HEAD_BYTES + (size_t)all * (is_big ? 4 : 1);
    size_t data_at = head_bytes + (size_t)count * (size_t)end_bytes;
    if (size < data_at)
        return -1;
    if ((head_bytes != rows->head_bytes || memcmp(head, rows->head, head_bytes)) &&
        keep_head(rows, head, head_bytes, count, all, is_big) < 0)
        return -1;
    const uint8_t *ends = head + head_bytes, *data = head + data_at;
    uint64_t data_bytes = count ? little_endian(ends + (count - 1) * end_bytes, end_bytes) : 0;
    if (head[1] & CHECKSUM ? data_bytes > size - data_at : data_bytes != size - data_at)
        return -1;
    for (Py_ssize_t i = 0; i < rows->layout->layout->count; i++) {
        int place = rows->places[i];
        if (place == NO_PLACE) {
            if (find_absent(rows, i, key) < 0)
                return -1;
        } else if (place == NULL_PLACE)
            rows->cells[i] = (Cell){.form = NOTHING};
        else {
            uint64_t start = place ? little_endian(ends + (place - 1) * end_bytes, end_bytes) : 0;
            uint64_t stop = little_endian(ends + place * end_bytes, end_bytes);
            if (start > stop || stop > data_bytes)
                return -1;
            rows->cells[i] = (Cell){.form = CELL, .at = data + start, .size = (Py_ssize_t)(stop - start)};
        }
    }
    if (!(head[1] & CHECKSUM))
        return 0;
    for (int j = 1; j < count; j++) /* also of columns that the table no longer has */
        if (little_endian(ends + (j - 1) * end_bytes, end_bytes) > little_endian(ends + j * end_bytes, end_bytes))
            return -1;
    return has_checksum(rows, key, value, data + data_bytes) ? 0 : -1;
}

/* --- format 1 ------------------------------------------------------------------------------------------ */

static int find_by_datums(Rows *rows, Bytes key, Bytes value)
{
    const TidbLayout *layout = rows->layout;
    const uint8_t *at = value.at, *end = value.end;
    Py_ssize_t count = layout->layout->count, guess = 0;
    if (layout->part_count && find_parts(rows, key) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++)
        rows->cells[i].form = ABSENT;
    if (end - at == 1 && *at == FLAG_NULL) /* no column */
        at = end;
    while (at < end) {
        int flag;
        Cell id, cell;
        if (next_datum(&at, end, &flag, &id) < 0 || flag != FLAG_VARINT ||
            next_datum(&at, end, &flag, &cell) < 0)
            return -1;
        Py_ssize_t i = column_of(layout, (int64_t)id.number, &guess);
        if (i < 0)
            continue;
        if (flag != FLAG_NULL && flag != row_flag(&layout->layout->columns[i]))
            return -1;
        rows->cells[i] = cell;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (layout->origins[i].role == IN_HANDLE && !has_handle(key)) /* invalid even if it isn't needed */
            return -1;
        if (rows->cells[i].form == ABSENT && find_absent(rows, i, key) < 0)
            return -1;
    }
    return 0;
}

int find_cells(Rows *rows, Bytes key, Bytes value)
{
    rows->has_parts = 0;
    if (value.at == value.end)
        return -1;
    switch (*value.at) {
    case FORMAT_2:
        return find_by_head(rows, key, value);
    case FLAG_NULL:
    case FLAG_VARINT:
        return find_by_datums(rows, key, value);
    default:
        return -1;
    }
}

int may_have_other_columns(Bytes value, Bytes other)
{
    enum { HEAD_BYTES = 6 };
    return value.end - value.at < HEAD_BYTES || other.end - other.at < HEAD_BYTES || *value.at != FORMAT_2 ||
           *other.at != FORMAT_2 || memcmp(value.at + 2, other.at + 2, HEAD_BYTES - 2);
}
