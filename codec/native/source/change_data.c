/* Messages of TiKV's change feed. Only regular messages are read here, whose fields are known, occur once and in
   rows aren't empty, and whose rows have a type: any other one is left to the decoder in Python. */
#include "change_data.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT, LENGTH = 2 }; /* wire types */
enum { UNKNOWN, TYPES = 128 };
enum { NO_MEMORY = -1, IRREGULAR = 0, REGULAR = 1 };
enum { LARGE = 1 << 15 }; /* a message of that many bytes is read without the GIL */

typedef struct {
    const uint8_t *at, *end;
} Span;

typedef struct {
    uint64_t region_id, request_id, resolved_ts;
    size_t first, count; /* of its rows */
    int has_rows, has_resolved_ts;
} Event;

typedef struct {
    FeedRow *rows;
    size_t row_count, row_room;
    Event *events;
    size_t event_count, event_room;
} Message;

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
    if (!read_varint(from, &size) || size > (uint64_t)(from->end - from->at) || size > UINT32_MAX)
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

static int read_content(Span *from, const uint8_t **content, uint32_t *size)
{
    Span found;
    if (!read_bytes(from, &found) || found.at == found.end)
        return 0;
    *content = found.at;
    *size = (uint32_t)(found.end - found.at);
    return 1;
}

static int read_row(Span from, FeedRow *row)
{
    unsigned seen = 0;
    int field, wire;
    uint64_t number;
    *row = (FeedRow){.key = from.at, .value = from.at, .old_value = from.at};
    while (from.at < from.end) {
        if (!read_tag(&from, &seen, &field, &wire))
            return 0;
        if (field >= 5 && field <= 7) {
            if (wire != LENGTH || !(field == 5   ? read_content(&from, &row->key, &row->key_bytes)
                                    : field == 6 ? read_content(&from, &row->value, &row->value_bytes)
                                                 : read_content(&from, &row->old_value, &row->old_bytes)))
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

/* Return an array of elements of `each` bytes with room for one more. */
static void *with_room(void *array, size_t count, size_t *room, size_t each)
{
    if (count < *room)
        return array;
    size_t more = *room ? 2 * *room : 64;
    void *larger = realloc(array, more * each);
    if (larger != NULL)
        *room = more;
    return larger;
}

static int read_rows(Span from, Message *message)
{
    while (from.at < from.end) {
        Span inner;
        if (*from.at++ != (1 << 3 | LENGTH) || !read_bytes(&from, &inner))
            return IRREGULAR;
        FeedRow *rows = with_room(message->rows, message->row_count, &message->row_room, sizeof *rows);
        if (rows == NULL)
            return NO_MEMORY;
        message->rows = rows;
        if (!read_row(inner, &rows[message->row_count++]))
            return IRREGULAR;
    }
    return REGULAR;
}

static int read_event(Span from, Event *event, Message *message)
{
    unsigned seen = 0;
    int field, wire, found;
    uint64_t number;
    Span inner;
    *event = (Event){.first = message->row_count};
    while (from.at < from.end) {
        if (!read_tag(&from, &seen, &field, &wire))
            return IRREGULAR;
        if (field == 3) { /* entries */
            if (event->has_resolved_ts || wire != LENGTH || !read_bytes(&from, &inner))
                return IRREGULAR;
            if ((found = read_rows(inner, message)) != REGULAR)
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
    event->count = message->row_count - event->first;
    return REGULAR;
}

static int read_message(Span from, Message *message)
{
    while (from.at < from.end) {
        Span inner;
        if (*from.at++ != (1 << 3 | LENGTH) || !read_bytes(&from, &inner))
            return IRREGULAR;
        Event *events = with_room(message->events, message->event_count, &message->event_room, sizeof *events);
        if (events == NULL)
            return NO_MEMORY;
        message->events = events;
        int found = read_event(inner, &events[message->event_count++], message);
        if (found != REGULAR)
            return found;
    }
    return REGULAR;
}

/* --- rows ---------------------------------------------------------------------------------------------- */

/* Copy rows by type: prewrites before commits and rollbacks. Those of an event that ends a scan stay in order. */
static void copy_rows(FeedRow *into, const FeedRow *rows, size_t count)
{
    size_t starts[TYPES] = {0}, next = 0;
    for (size_t i = 0; i < count; i++)
        starts[rows[i].type]++;
    if (starts[INITIALIZED] || starts[rows[0].type] == count) {
        memcpy(into, rows, count * sizeof *rows);
        return;
    }
    for (int type = 0; type < TYPES; type++) {
        size_t its = starts[type];
        starts[type] = next;
        next += its;
    }
    for (size_t i = 0; i < count; i++)
        into[starts[rows[i].type]++] = rows[i];
}

static PyObject *new_rows(PyObject *data, const FeedRow *rows, size_t count)
{
    RegionRows *made = PyObject_NewVar(RegionRows, &RegionRowsType, (Py_ssize_t)count);
    if (made != NULL) {
        made->message = Py_NewRef(data);
        copy_rows(made->rows, rows, count);
    }
    return (PyObject *)made;
}

static void free_rows(PyObject *self)
{
    Py_DECREF(((RegionRows *)self)->message);
    PyObject_Free(self);
}

static Py_ssize_t length(PyObject *self)
{
    return Py_SIZE(self);
}

static PyObject *item(PyObject *self, Py_ssize_t index)
{
    if (index < 0 || index >= Py_SIZE(self)) {
        PyErr_SetString(PyExc_IndexError, "the event has no such row");
        return NULL;
    }
    const FeedRow *row = &((RegionRows *)self)->rows[index];
    return Py_BuildValue("iiKKy#y#y#K", row->type, row->op, (unsigned long long)row->start_ts,
                         (unsigned long long)row->commit_ts, row->key, (Py_ssize_t)row->key_bytes, row->value,
                         (Py_ssize_t)row->value_bytes, row->old_value, (Py_ssize_t)row->old_bytes,
                         (unsigned long long)row->generation);
}

static PySequenceMethods rows_sequence = {.sq_length = length, .sq_item = item};

PyTypeObject RegionRowsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tidemill.codec.native._native.RegionRows",
    .tp_basicsize = sizeof(RegionRows),
    .tp_itemsize = sizeof(FeedRow),
    .tp_dealloc = free_rows,
    .tp_as_sequence = &rows_sequence,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_SEQUENCE,
    .tp_doc = "The rows of one event of a region, in a message's bytes.",
};

/* --- messages ------------------------------------------------------------------------------------------ */

static PyObject *payload_of(const Event *event, const Message *message, PyObject *data)
{
    return event->has_resolved_ts ? PyLong_FromUnsignedLongLong(event->resolved_ts)
                                  : new_rows(data, message->rows + event->first, event->count);
}

static PyObject *events_of(const Message *message, PyObject *data)
{
    PyObject *events = PyList_New(0);
    for (size_t i = 0; events != NULL && i < message->event_count; i++) {
        const Event *event = &message->events[i];
        if (!event->count && !event->has_resolved_ts)
            continue;
        PyObject *payload = payload_of(event, message, data);
        PyObject *made = payload == NULL ? NULL
                                         : Py_BuildValue("KKN", (unsigned long long)event->region_id,
                                                         (unsigned long long)event->request_id, payload);
        if (made == NULL || PyList_Append(events, made) < 0)
            Py_CLEAR(events);
        Py_XDECREF(made);
    }
    return events;
}

PyObject *change_data(PyObject *Py_UNUSED(module), PyObject *data)
{
    if (!PyBytes_CheckExact(data)) {
        PyErr_SetString(PyExc_TypeError, "a message is bytes");
        return NULL;
    }
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(data);
    Span all = {at, at + PyBytes_GET_SIZE(data)};
    Message message = {0};
    int found;
    if (all.end - all.at < LARGE)
        found = read_message(all, &message);
    else {
        Py_BEGIN_ALLOW_THREADS
        found = read_message(all, &message);
        Py_END_ALLOW_THREADS
    }
    PyObject *events = found == REGULAR ? events_of(&message, data) : NULL;
    free(message.rows);
    free(message.events);
    if (found == NO_MEMORY)
        return PyErr_NoMemory();
    return found == IRREGULAR ? Py_NewRef(Py_None) : events;
}
