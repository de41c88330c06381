/* Transactions of one rows event each, as most small ones are: the twin of a part of the MySQL mounter. */
#include "event_transactions.h"
#include "block.h"

enum { ROWS = 1, HEAD_BYTES = 27, TYPE_AT = 4 }; /* of codec/mysql/entry.py and rows.py */

/* What is asked for all transactions. */
typedef struct {
    const Block *block;
    Py_ssize_t first;
    PyObject *blocks, *items, *operations, *source, *run_type, *rows_type, *transaction_type;
} Request;

/* A layout's block of events, which new references are to. */
typedef struct {
    uint64_t number;
    PyObject *block, *events, *commit_ts, *start_ts, *table;
} Events;

static void forget(Events *events)
{
    Py_CLEAR(events->block);
    Py_CLEAR(events->events);
    Py_CLEAR(events->commit_ts);
    Py_CLEAR(events->start_ts);
    Py_CLEAR(events->table);
}

static int get_list(PyObject *block, const char *name, PyObject **list)
{
    *list = PyObject_GetAttrString(block, name);
    if (*list != NULL && !PyList_Check(*list))
        PyErr_Format(PyExc_TypeError, "%s is a list", name);
    return *list != NULL && PyList_Check(*list) ? 0 : -1;
}

/* Find the block of a layout: 1, or 0 if there is none, or -1. */
static int find_events(const Request *request, Events *events, uint64_t number)
{
    if (events->block != NULL && events->number == number)
        return 1;
    forget(events);
    PyObject *key = PyLong_FromUnsignedLongLong(number);
    PyObject *block = key == NULL ? NULL : PyDict_GetItemWithError(request->blocks, key);
    Py_XDECREF(key);
    if (block == NULL)
        return PyErr_Occurred() ? -1 : 0;
    events->number = number;
    events->block = Py_NewRef(block);
    events->table = PyObject_GetAttrString(block, "table");
    return events->table == NULL || get_list(block, "events", &events->events) < 0 ||
                   get_list(block, "commit_ts", &events->commit_ts) < 0 ||
                   get_list(block, "start_ts", &events->start_ts) < 0
               ? -1
               : 1;
}

/* Return the operation of a rows event, a borrowed reference; NULL if it is none, or with an exception. */
static PyObject *operation_of(const Request *request, const uint8_t *event, size_t size)
{
    if (size <= HEAD_BYTES)
        return NULL;
    PyObject *type = PyLong_FromLong(event[TYPE_AT]);
    PyObject *operation = type == NULL ? NULL : PyDict_GetItemWithError(request->operations, type);
    Py_XDECREF(type);
    return operation;
}

/* Return the run of an event, which is added to its block. */
static PyObject *new_run(const Request *request, const Events *events, PyObject *operation, PyObject *event,
                         PyObject *commit_ts, PyObject *start_ts)
{
    PyObject *place = PyLong_FromSsize_t(PyList_GET_SIZE(events->events));
    if (place == NULL)
        return NULL;
    PyObject *arguments[] = {commit_ts, start_ts, events->table, operation, Py_None, events->block, place};
    PyObject *run = PyObject_Vectorcall(request->run_type, arguments, 7, NULL);
    Py_DECREF(place);
    if (run != NULL && (PyList_Append(events->events, event) < 0 ||
                        PyList_Append(events->commit_ts, commit_ts) < 0 ||
                        PyList_Append(events->start_ts, start_ts) < 0))
        Py_CLEAR(run);
    return run;
}

/* Return rows of one run, or NULL; takes over the reference, which may be NULL. */
static PyObject *rows_of(const Request *request, PyObject *run)
{
    PyObject *runs = run == NULL ? NULL : PyTuple_Pack(1, run), *rows = NULL;
    Py_XDECREF(run);
    if (runs != NULL) {
        PyObject_GC_UnTrack(runs); /* a run refers to nothing that could refer to it */
        rows = PyObject_Vectorcall(request->rows_type, &runs, 1, NULL);
        Py_DECREF(runs);
    }
    return rows;
}

static int add_transaction(const Request *request, const Events *events, const Entry *entry, PyObject *operation)
{
    const uint8_t *value = key_of(request->block->storage, entry) + entry->key_bytes;
    PyObject *commit_ts = PyLong_FromUnsignedLongLong(entry->commit_ts);
    PyObject *start_ts = PyLong_FromUnsignedLongLong(entry->start_ts);
    PyObject *event = PyBytes_FromStringAndSize((const char *)value, entry->value_bytes);
    PyObject *position = PyUnicode_DecodeUTF8((const char *)value + entry->value_bytes, entry->old_bytes, NULL);
    PyObject *rows = NULL, *transaction = NULL;
    if (commit_ts != NULL && start_ts != NULL && event != NULL && position != NULL)
        rows = rows_of(request, new_run(request, events, operation, event, commit_ts, start_ts));
    if (rows != NULL) {
        PyObject *arguments[] = {commit_ts, start_ts, request->source, rows, position};
        transaction = PyObject_Vectorcall(request->transaction_type, arguments, 5, NULL);
    }
    int failed = transaction == NULL || PyList_Append(request->items, transaction) < 0;
    Py_XDECREF(commit_ts);
    Py_XDECREF(start_ts);
    Py_XDECREF(event);
    Py_XDECREF(position);
    Py_XDECREF(rows);
    Py_XDECREF(transaction);
    return failed ? -1 : 0;
}

PyObject *event_transactions(PyObject *module, PyObject *arguments)
{
    Request request;
    Events events = {0};
    if (!PyArg_ParseTuple(arguments, "O!nO!O!O!OOOO", &BlockType, &request.block, &request.first, &PyDict_Type,
                          &request.blocks, &PyList_Type, &request.items, &PyDict_Type, &request.operations,
                          &request.source, &request.run_type, &request.rows_type, &request.transaction_type))
        return NULL;
    size_t i = request.first < 0 ? 0 : (size_t)request.first;
    int found = 1;
    for (; i < request.block->count; i++) {
        const Entry *entry = &request.block->first[i];
        const uint8_t *key = key_of(request.block->storage, entry);
        if (!entry->key_bytes || key[entry->key_bytes - 1] != ROWS || !entry->old_bytes)
            break;
        PyObject *operation = operation_of(&request, key + entry->key_bytes, entry->value_bytes);
        found = operation == NULL ? (PyErr_Occurred() ? -1 : 0) : find_events(&request, &events, entry->origin);
        if (found > 0 && add_transaction(&request, &events, entry, operation) < 0)
            found = -1;
        if (found <= 0)
            break;
    }
    forget(&events);
    return found < 0 ? NULL : PyLong_FromSize_t(i);
}
