/* Whole transactions of a binlog into a block. Only regular ones are read here: a GTID of the expected server, the
   maps of known tables with their rows events, and XID, all in one list. Any other is left to the decoder in
   Python, from its GTID on. See puller/mysql/binlog.py for the form of events. */
#include "binlog_transactions.h"
#include "block.h"
#include "bytes.h"
#include "crc32.h"

#include <stdio.h>
#include <string.h>

enum { HEADER = 19, CRC = 4, TABLE_ID = 6, BEFORE_TABLE = 8, LOGICAL_BITS = 18, MOST_TABLES = 16 };
enum { QUERY = 2, XID = 16, TABLE_MAP = 19, ROWS_QUERY = 29, MYSQL_GTID = 33, ANONYMOUS = 34 };
enum { ANNOTATION = 160, MARIADB_GTID = 162 };
enum { STANDALONE = 1, PREPARED_XA = 64, COMPLETED_XA = 128 };
enum { ROWS_KIND = 1, KEY_BYTES = 9, MOST_TEXT = 1 << 16 };
enum { FAILED = -1, IRREGULAR = 0, REGULAR = 1 }; /* FAILED has an exception */

typedef struct {
    const uint8_t *at; /* its header */
    size_t size;       /* without the CRC */
} Event;

typedef struct {
    Event event;
    uint64_t layout;
} WantedRows;

/* The tables of a transaction, by the ids that it gives them. */
typedef struct {
    const uint8_t *ids[MOST_TABLES];
    uint64_t layouts[MOST_TABLES];
    int count;
} Tables;

typedef struct {
    PyObject *payloads, *layouts;
    int has_crc;
    uint64_t last_ts, offset;
    /* The GTID that is expected, or NULL for any: a server with its domain, or a UUID. */
    const uint8_t *gtid;
    Py_ssize_t gtid_bytes;
    uint64_t number;
    Event map; /* the latest, and its layout */
    uint64_t map_layout;
    Event begin, end; /* of the transaction: its GTID, its XID */
    WantedRows *rows;
    size_t row_count, row_room;
} Reading;

/* Find an event; 0 if there is none of at least that many bytes after the header. */
static int event_at(const Reading *reading, Py_ssize_t index, size_t least, Event *event)
{
    PyObject *payload = PyList_GET_ITEM(reading->payloads, index);
    if (!PyBytes_CheckExact(payload))
        return 0;
    size_t crc = reading->has_crc ? CRC : 0, size = (size_t)PyBytes_GET_SIZE(payload);
    if (size < 1 + HEADER + least + crc)
        return 0;
    *event = (Event){(const uint8_t *)PyBytes_AS_STRING(payload) + 1, size - 1 - crc};
    return 1;
}

static int is_whole(const Reading *reading, const Event *event)
{
    return !reading->has_crc || crc32_of(0, event->at, event->size) == little_endian(event->at + event->size, CRC);
}

static int is_rows(int kind)
{
    return (kind >= 23 && kind <= 25) || (kind >= 30 && kind <= 32) || kind == 39;
}

/* --- the parts of a transaction ------------------------------------------------------------------------ */

/* True for a GTID that begins a regular transaction. */
static int begins(const Reading *reading, const Event *gtid)
{
    const uint8_t *body = gtid->at + HEADER;
    size_t size = gtid->size - HEADER;
    switch (gtid->at[4]) {
    case MARIADB_GTID: { /* number, domain, flags */
        uint8_t expected[8];
        if (size < 13 || body[12] & (STANDALONE | PREPARED_XA | COMPLETED_XA))
            return 0;
        memcpy(expected, body + 8, 4);
        memcpy(expected + 4, gtid->at + 5, 4);
        return reading->gtid == NULL || (reading->gtid_bytes == 8 && !memcmp(expected, reading->gtid, 8));
    }
    case MYSQL_GTID: /* flags, UUID, number */
        return size >= 25 && (reading->gtid == NULL ||
                              (reading->gtid_bytes == 16 && !memcmp(body + 1, reading->gtid, 16) &&
                               little_endian(body + 17, 8) == reading->number + 1));
    case ANONYMOUS:
        return reading->gtid == NULL;
    default:
        return 0;
    }
}

static uint64_t number_of(const Event *gtid)
{
    const uint8_t *body = gtid->at + HEADER;
    return gtid->at[4] == MARIADB_GTID ? little_endian(body, 8) : little_endian(body + 17, 8);
}

/* True for the statement BEGIN: session, seconds, bytes of its schema's name, error, bytes of variables. */
static int is_begin(const Event *event)
{
    const uint8_t *body = event->at + HEADER;
    size_t size = event->size - HEADER;
    if (size < 13)
        return 0;
    size_t before = 13 + (size_t)body[8] + 1 + (size_t)little_endian(body + 11, 2);
    return !little_endian(body + 9, 2) && size == before + 5 && !memcmp(body + before, "BEGIN", 5);
}

/* Give a table its id; 0 if its layout isn't known. */
static int map_table(Reading *reading, const Event *event, Tables *tables)
{
    const Event map = {event->at + HEADER + BEFORE_TABLE, event->size - HEADER - BEFORE_TABLE};
    if (reading->map.at == NULL || map.size != reading->map.size || memcmp(map.at, reading->map.at, map.size)) {
        PyObject *key = PyBytes_FromStringAndSize((const char *)map.at, (Py_ssize_t)map.size);
        PyObject *layout = key == NULL ? NULL : PyDict_GetItemWithError(reading->layouts, key);
        Py_XDECREF(key);
        if (layout == NULL)
            return PyErr_Occurred() ? FAILED : IRREGULAR;
        uint64_t number = PyLong_AsUnsignedLongLong(layout);
        if (PyErr_Occurred())
            return FAILED;
        reading->map = map;
        reading->map_layout = number;
    }
    const uint8_t *id = event->at + HEADER;
    int at = 0;
    while (at < tables->count && memcmp(tables->ids[at], id, TABLE_ID))
        at++;
    if (at == MOST_TABLES)
        return IRREGULAR;
    tables->ids[at] = id;
    tables->layouts[at] = reading->map_layout;
    tables->count += at == tables->count;
    return REGULAR;
}

static int add_rows(Reading *reading, const Event *event, const Tables *tables)
{
    int at = 0;
    while (at < tables->count && memcmp(tables->ids[at], event->at + HEADER, TABLE_ID))
        at++;
    if (at == tables->count)
        return IRREGULAR;
    if (!tables->layouts[at])
        return REGULAR;
    if (reading->row_count == reading->row_room) {
        size_t room = reading->row_room ? 2 * reading->row_room : 16;
        WantedRows *larger = PyMem_Realloc(reading->rows, room * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return FAILED;
        }
        reading->rows = larger;
        reading->row_room = room;
    }
    reading->rows[reading->row_count++] = (WantedRows){*event, tables->layouts[at]};
    return REGULAR;
}

/* Find the transaction that begins at `first`, and the index after it. The CRCs are right if it is REGULAR. */
static int find_transaction(Reading *reading, Py_ssize_t first, Py_ssize_t *end)
{
    Tables tables = {.count = 0};
    Event event = {0};
    Py_ssize_t count = PyList_GET_SIZE(reading->payloads);
    if (!event_at(reading, first, 0, &event) || !begins(reading, &event))
        return IRREGULAR;
    int has_begun = event.at[4] == MARIADB_GTID, kind = 0;
    reading->begin = event;
    reading->row_count = 0;
    for (*end = first + 1; kind != XID; ++*end) {
        if (*end >= count || !event_at(reading, *end, BEFORE_TABLE, &event))
            return IRREGULAR;
        kind = event.at[4];
        int found = REGULAR;
        if (kind == QUERY && !has_begun && is_begin(&event))
            has_begun = 1;
        else if (!has_begun)
            found = IRREGULAR;
        else if (is_rows(kind))
            found = add_rows(reading, &event, &tables);
        else if (kind == TABLE_MAP)
            found = map_table(reading, &event, &tables);
        else if (kind != XID && kind != ANNOTATION && kind != ROWS_QUERY)
            found = IRREGULAR;
        if (found != REGULAR)
            return found;
    }
    reading->end = event;
    if (!little_endian(event.at + 13, 4)) /* where it ends */
        return IRREGULAR;
    for (Py_ssize_t i = first; i < *end; i++)
        if (!event_at(reading, i, 0, &event) || !is_whole(reading, &event))
            return IRREGULAR;
    return REGULAR;
}

/* --- its changes --------------------------------------------------------------------------------------- */

/* Return where an event ends, of whose offset the binlog has 32 bits. */
static uint64_t end_of(const Event *event, uint64_t offset)
{
    uint64_t end = (offset & ~(uint64_t)UINT32_MAX) | little_endian(event->at + 13, 4);
    return end >= offset ? end : end + ((uint64_t)1 << 32);
}

/* Add the rows as changes, the last one with the position after them. 0, or -1 without memory. */
static int put_rows(BlockBuilder *builder, Storage *storage, const Reading *reading, const char *position,
                    size_t position_bytes)
{
    for (size_t i = 0; i < reading->row_count; i++) {
        const WantedRows *rows = &reading->rows[i];
        uint8_t key[KEY_BYTES];
        for (int byte = 0; byte < 8; byte++)
            key[byte] = (uint8_t)((uint64_t)(i + 1) >> (56 - 8 * byte));
        key[8] = ROWS_KIND;
        Entry entry = {
            .commit_ts = reading->last_ts,
            .start_ts = reading->last_ts,
            .origin = rows->layout,
            .key_bytes = KEY_BYTES,
            .value_bytes = (uint32_t)rows->event.size,
            .old_bytes = i + 1 == reading->row_count ? (uint32_t)position_bytes : 0,
            .owner = 1, /* a PUT */
        };
        if (put_entry(storage, entry, key, rows->event.at, (const uint8_t *)position) < 0)
            return -1;
        builder->content += content_bytes(&entry);
    }
    return 0;
}

PyObject *binlog_transactions(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Reading reading = {0};
    PyObject *builder;
    Py_ssize_t first, end, file_bytes, before_bytes, after_bytes;
    const char *file, *before, *after;
    unsigned long long last_ts, offset, number;
    if (!PyArg_ParseTuple(arguments, "O!O!nO!pKKs#z#Ks#s#", &BlockBuilderType, &builder, &PyList_Type,
                          &reading.payloads, &first, &PyDict_Type, &reading.layouts, &reading.has_crc, &last_ts,
                          &offset, &file, &file_bytes, &reading.gtid, &reading.gtid_bytes, &number, &before,
                          &before_bytes, &after, &after_bytes))
        return NULL;
    if (first < 0 || first >= PyList_GET_SIZE(reading.payloads))
        return PyErr_Format(PyExc_IndexError, "there is no event %zd", first);
    Storage *storage = storage_of_builder((BlockBuilder *)builder);
    size_t room = (size_t)(file_bytes + before_bytes + after_bytes) + 48; /* with two numbers */
    char *text = storage == NULL ? NULL : PyMem_Malloc(room);
    if (text == NULL)
        return storage == NULL ? NULL : PyErr_NoMemory();
    reading.last_ts = last_ts;
    reading.offset = offset;
    reading.number = number;
    Py_ssize_t transactions = 0, row_events = 0;
    uint64_t epoch_seconds = 0;
    int found = REGULAR, has_rows = 0;
    memcpy(text, file, (size_t)file_bytes);
    for (; first < PyList_GET_SIZE(reading.payloads); first = end) {
        if ((found = find_transaction(&reading, first, &end)) != REGULAR)
            break;
        epoch_seconds = little_endian(reading.begin.at, 4);
        uint64_t ts = epoch_seconds * 1000 << LOGICAL_BITS;
        reading.last_ts = ts > reading.last_ts ? ts : reading.last_ts + 1;
        reading.offset = end_of(&reading.end, reading.offset);
        char *into = text + file_bytes;
        into += snprintf(into, 24, "%llu", (unsigned long long)reading.offset);
        memcpy(into, before, (size_t)before_bytes);
        into += before_bytes;
        if (reading.gtid != NULL) {
            reading.number = number_of(&reading.begin);
            into += snprintf(into, 24, "%llu", (unsigned long long)reading.number);
        }
        memcpy(into, after, (size_t)after_bytes);
        into += after_bytes;
        if (put_rows((BlockBuilder *)builder, storage, &reading, text, (size_t)(into - text)) < 0) {
            PyErr_NoMemory();
            found = FAILED;
            break;
        }
        has_rows = reading.row_count > 0;
        row_events += (Py_ssize_t)reading.row_count;
        transactions++;
    }
    PyMem_Free(text);
    PyMem_Free(reading.rows);
    if (found == FAILED)
        return NULL;
    return Py_BuildValue("nnnKKKKN", first, transactions, row_events, (unsigned long long)reading.last_ts,
                         (unsigned long long)reading.offset, (unsigned long long)reading.number,
                         (unsigned long long)epoch_seconds, PyBool_FromLong(has_rows));
}
