/* Messages of TiKV's change feed as columns. Only regular messages are read here, whose fields are known, occur
   once and in rows aren't empty, and whose rows have a type: any other one is left to the decoder in Python. */
#include "change_data.h"

#include <stdint.h>
#include <stdlib.h>

enum { VARINT, LENGTH = 2 }; /* wire types */
enum { UNKNOWN, PREWRITE, INITIALIZED = 5, TYPES = 128 };
enum { FAILED = -1, IRREGULAR = 0, REGULAR = 1 }; /* the first with an exception */

typedef struct {
    const uint8_t *at, *end;
} Span;

typedef struct {
    uint64_t start_ts, commit_ts, generation;
    uint8_t type, op;
    Span key, value, old_value;
} Row;

typedef struct {
    Row *rows;
    Py_ssize_t count, room;
} Rows;

/* --- the wire format ----------------------------------------------------------------------------------- */

static int read_varint(Span *from, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; from->at < from->end && shift < 64; shift += 7) {
        uint8_t byte = *from->at++;
        if (shift == 63 && byte > 1)
            return 0;
        *number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return 1;
    }
    return 0;
}

static int read_bytes(Span *from, Span *into)
{
    uint64_t size;
    if (!read_varint(from, &size) || size > (uint64_t)(from->end - from->at))
        return 0;
    *into = (Span){from->at, from->at + size};
    from->at += size;
    return 1;
}

/* Read a field's number, which is below 16, and its wire type; 0 if `seen` has the field already. */
static int read_tag(Span *from, unsigned *seen, int *field, int *wire)
{
    uint8_t tag = *from->at++;
    *field = tag >> 3;
    *wire = tag & 7;
    if (tag >= 0x80 || *seen & 1u << *field)
        return 0;
    *seen |= 1u << *field;
    return 1;
}

static int read_row(Span from, Row *row)
{
    unsigned seen = 0;
    int field, wire;
    uint64_t number;
    *row = (Row){0};
    while (from.at < from.end) {
        if (!read_tag(&from, &seen, &field, &wire))
            return 0;
        if (field >= 5 && field <= 7) {
            Span *into = field == 5 ? &row->key : field == 6 ? &row->value : &row->old_value;
            if (wire != LENGTH || !read_bytes(&from, into) || into->at == into->end)
                return 0;
            continue;
        }
        if (wire != VARINT || !read_varint(&from, &number) || number == 0)
            return 0;
        switch (field) {
        case 1:
            row->start_ts = number;
            break;
        case 2:
            row->commit_ts = number;
            break;
        case 3:
        case 4:
            if (number >= TYPES)
                return 0;
            *(field == 3 ? &row->type : &row->op) = (uint8_t)number;
            break;
        case 8: /* the time at which it expires */
        case 9: /* the transaction's source */
            break;
        case 10:
            row->generation = number;
            break;
        default:
            return 0;
        }
    }
    return row->type != UNKNOWN;
}

static Row *new_row(Rows *rows)
{
    if (rows->count == rows->room) {
        Py_ssize_t room = rows->room ? 2 * rows->room : 256;
        Row *larger = realloc(rows->rows, (size_t)room * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        rows->rows = larger;
        rows->room = room;
    }
    return &rows->rows[rows->count++];
}

static int read_rows(Span from, Rows *rows)
{
    rows->count = 0;
    while (from.at < from.end) {
        Span inner;
        if (*from.at++ != (1 << 3 | LENGTH) || !read_bytes(&from, &inner))
            return IRREGULAR;
        Row *row = new_row(rows);
        if (row == NULL)
            return FAILED;
        if (!read_row(inner, row))
            return IRREGULAR;
    }
    return REGULAR;
}

/* --- columns ------------------------------------------------------------------------------------------- */

enum { OPS, START_TS, COMMIT_TS, KEYS, VALUES, OLD_VALUES, GENERATIONS, LISTS };

static PyObject *bytes_of(Span bytes)
{
    return PyBytes_FromStringAndSize((const char *)bytes.at, bytes.end - bytes.at);
}

/* Return the number; it is the same object as the last one if that is equal. */
static PyObject *number_of(uint64_t number, uint64_t last, PyObject *last_object)
{
    return last_object != NULL && number == last ? Py_NewRef(last_object) : PyLong_FromUnsignedLongLong(number);
}

static int put_row(PyObject *const *lists, Py_ssize_t i, const Row *row, const Row *last)
{
#define LAST(list) (last == NULL ? NULL : PyList_GET_ITEM(lists[list], i - 1))
    PyObject *made[LISTS] = {
        [OPS] = PyLong_FromLong(row->op),
        [START_TS] = number_of(row->start_ts, last == NULL ? 0 : last->start_ts, LAST(START_TS)),
        [COMMIT_TS] = number_of(row->commit_ts, last == NULL ? 0 : last->commit_ts, LAST(COMMIT_TS)),
        [KEYS] = bytes_of(row->key),
        [VALUES] = bytes_of(row->value),
        [OLD_VALUES] = bytes_of(row->old_value),
        [GENERATIONS] = PyLong_FromUnsignedLongLong(row->generation),
    };
    int failed = 0;
    for (int list = 0; list < LISTS; list++) {
        PyList_SET_ITEM(lists[list], i, made[list]);
        failed |= made[list] == NULL;
    }
    return failed ? -1 : 0;
}

/* Append the columns of the rows of a type, or of all rows for UNKNOWN, to `groups`. */
static int append_group(PyObject *groups, const Rows *rows, int type, Py_ssize_t count)
{
    PyObject *lists[LISTS] = {0}, *types = PyBytes_FromStringAndSize(NULL, count), *group = NULL;
    int failed = types == NULL, has_generations = 0;
    for (int list = 0; list < LISTS; list++)
        failed |= (lists[list] = PyList_New(count)) == NULL;
    const Row *last = NULL;
    for (Py_ssize_t i = 0, n = 0; !failed && i < count; n++) {
        const Row *row = &rows->rows[n];
        if (type != UNKNOWN && row->type != type)
            continue;
        PyBytes_AS_STRING(types)[i] = (char)row->type;
        has_generations |= row->generation != 0;
        failed = put_row(lists, i++, row, last) < 0;
        last = row;
    }
    if (!failed)
        group = PyTuple_Pack(8, types, lists[OPS], lists[START_TS], lists[COMMIT_TS], lists[KEYS],
                             lists[VALUES], lists[OLD_VALUES], has_generations ? lists[GENERATIONS] : Py_None);
    failed = group == NULL || PyList_Append(groups, group) < 0;
    Py_XDECREF(group);
    Py_XDECREF(types);
    for (int list = 0; list < LISTS; list++)
        Py_XDECREF(lists[list]);
    return failed ? -1 : 0;
}

/* Return the columns of the rows, by type: prewrites before commits and rollbacks. In an event that ends a scan
   all rows stay in order. */
static PyObject *groups_of(const Rows *rows)
{
    Py_ssize_t counts[TYPES] = {0};
    for (Py_ssize_t n = 0; n < rows->count; n++)
        counts[rows->rows[n].type]++;
    PyObject *groups = PyList_New(0);
    int failed = groups == NULL;
    if (counts[INITIALIZED])
        failed = failed || append_group(groups, rows, UNKNOWN, rows->count) < 0;
    else
        for (int type = PREWRITE; !failed && type < TYPES; type++)
            if (counts[type])
                failed = append_group(groups, rows, type, counts[type]) < 0;
    if (failed)
        Py_CLEAR(groups);
    return groups;
}

/* --- messages ------------------------------------------------------------------------------------------ */

typedef struct {
    uint64_t region_id, request_id, resolved_ts;
    int has_rows, has_resolved_ts;
} Event;

static int read_event(Span from, Event *event, Rows *rows)
{
    unsigned seen = 0;
    int field, wire, found;
    uint64_t number;
    Span inner;
    *event = (Event){0};
    while (from.at < from.end) {
        if (!read_tag(&from, &seen, &field, &wire))
            return IRREGULAR;
        if (field == 3) { /* entries */
            if (event->has_resolved_ts || wire != LENGTH || !read_bytes(&from, &inner))
                return IRREGULAR;
            if ((found = read_rows(inner, rows)) != REGULAR)
                return found;
            event->has_rows = 1;
            continue;
        }
        if (wire != VARINT || !read_varint(&from, &number))
            return IRREGULAR;
        if (field == 1)
            event->region_id = number;
        else if (field == 7)
            event->request_id = number;
        else if (field == 6 && !event->has_rows) {
            event->resolved_ts = number;
            event->has_resolved_ts = 1;
        } else if (field != 2) /* the index */
            return IRREGULAR;
    }
    return REGULAR;
}

static int append_event(PyObject *events, const Event *event, const Rows *rows)
{
    if (!event->has_rows && !event->has_resolved_ts)
        return 0;
    PyObject *payload = event->has_rows ? groups_of(rows) : PyLong_FromUnsignedLongLong(event->resolved_ts);
    if (payload == NULL)
        return -1;
    PyObject *made = Py_BuildValue("KKN", (unsigned long long)event->region_id,
                                   (unsigned long long)event->request_id, payload);
    int failed = made == NULL || PyList_Append(events, made) < 0;
    Py_XDECREF(made);
    return failed ? -1 : 0;
}

static int read_message(Span from, PyObject *events, Rows *rows)
{
    while (from.at < from.end) {
        Span inner;
        Event event;
        if (*from.at++ != (1 << 3 | LENGTH) || !read_bytes(&from, &inner))
            return IRREGULAR;
        int found = read_event(inner, &event, rows);
        if (found != REGULAR)
            return found;
        if (append_event(events, &event, rows) < 0)
            return FAILED;
    }
    return REGULAR;
}

PyObject *change_data(PyObject *module, PyObject *data)
{
    if (!PyBytes_CheckExact(data)) {
        PyErr_SetString(PyExc_TypeError, "a message is bytes");
        return NULL;
    }
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(data);
    PyObject *events = PyList_New(0);
    if (events == NULL)
        return NULL;
    Rows rows = {0};
    int found = read_message((Span){at, at + PyBytes_GET_SIZE(data)}, events, &rows);
    free(rows.rows);
    if (found == REGULAR)
        return events;
    Py_DECREF(events);
    if (found == FAILED)
        return NULL;
    Py_RETURN_NONE;
}
