/* Passes over items: fields are read where the classes keep them, as attributes take four times as long. */
#include "items.h"

#include <structmember.h>

enum { COMMIT_TS, LAST, CHUNK, ROWS, RUNS, COUNT, RUN_TABLE, RUN_OP, CHANGE_TABLE, CHANGE_OP, FIELDS };

static PyTypeObject *transaction_type, *rows_type, *run_type, *change_type;
static Py_ssize_t offsets[FIELDS];

static int find_field(int field, PyTypeObject *type, const char *name)
{
    PyObject *member = PyObject_GetAttrString((PyObject *)type, name);
    if (member == NULL)
        return -1;
    int is_field = Py_TYPE(member) == &PyMemberDescr_Type &&
                   ((PyMemberDescrObject *)member)->d_member->type == T_OBJECT_EX;
    if (is_field)
        offsets[field] = ((PyMemberDescrObject *)member)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s.%s isn't the field of a Struct", type->tp_name, name);
    Py_DECREF(member);
    return is_field ? 0 : -1;
}

PyObject *use_items(PyObject *module, PyObject *arguments)
{
    PyTypeObject *transaction, *rows, *run, *change;
    if (!PyArg_ParseTuple(arguments, "O!O!O!O!", &PyType_Type, &transaction, &PyType_Type, &rows, &PyType_Type,
                          &run, &PyType_Type, &change) ||
        find_field(COMMIT_TS, transaction, "commit_ts") < 0 || find_field(LAST, transaction, "last") < 0 ||
        find_field(CHUNK, transaction, "chunk") < 0 || find_field(ROWS, transaction, "rows") < 0 ||
        find_field(RUNS, rows, "runs") < 0 || find_field(COUNT, rows, "_count") < 0 ||
        find_field(RUN_TABLE, run, "table") < 0 || find_field(RUN_OP, run, "op") < 0 ||
        find_field(CHANGE_TABLE, change, "table") < 0 || find_field(CHANGE_OP, change, "op") < 0)
        return NULL;
    Py_XSETREF(transaction_type, (PyTypeObject *)Py_NewRef(transaction));
    Py_XSETREF(rows_type, (PyTypeObject *)Py_NewRef(rows));
    Py_XSETREF(run_type, (PyTypeObject *)Py_NewRef(run));
    Py_XSETREF(change_type, (PyTypeObject *)Py_NewRef(change));
    Py_RETURN_NONE;
}

/* Return the value of a field, a borrowed reference; NULL with an exception if it was deleted. */
static inline PyObject *value_of(PyObject *object, int field)
{
    PyObject *value = *(PyObject **)((char *)object + offsets[field]);
    if (value == NULL)
        PyErr_Format(PyExc_AttributeError, "a %s without a field", Py_TYPE(object)->tp_name);
    return value;
}

/* Return the number of a transaction's rows, or -1 with an exception. */
static Py_ssize_t size_of(PyObject *rows)
{
    if (PyList_CheckExact(rows))
        return PyList_GET_SIZE(rows);
    if (Py_IS_TYPE(rows, rows_type)) {
        PyObject *count = value_of(rows, COUNT);
        Py_ssize_t size = count == NULL ? -1 : PyLong_AsSsize_t(count);
        if (size >= 0 || PyErr_Occurred())
            return size;
    }
    return PyObject_Size(rows);
}

/* --- whole transactions ----------------------------------------------------------------------------------- */

typedef struct {
    Py_ssize_t count, rows, empty, room;
    PyObject *ts; /* of the last one; compared as an object, which takes less time than to convert each */
} Whole;

/* Add an item: 1 if it is one of them, 0 if they end before it, -1 with an exception. */
static int add_item(Whole *whole, PyObject *item)
{
    if (!Py_IS_TYPE(item, transaction_type))
        return 0;
    PyObject *last = value_of(item, LAST), *chunk = value_of(item, CHUNK), *rows = value_of(item, ROWS);
    PyObject *commit_ts = value_of(item, COMMIT_TS);
    if (last == NULL || chunk == NULL || rows == NULL || commit_ts == NULL)
        return -1;
    if (last != Py_True || chunk != Py_None)
        return 0;
    int ends = PyObject_RichCompareBool(commit_ts, whole->ts, whole->rows < whole->room ? Py_LT : Py_NE);
    if (ends)
        return ends < 0 ? -1 : 0;
    Py_ssize_t size = size_of(rows);
    if (size < 0)
        return -1;
    Py_SETREF(whole->ts, Py_NewRef(commit_ts));
    whole->count++;
    whole->rows += size;
    whole->empty += size == 0;
    return 1;
}

PyObject *whole_items(PyObject *module, PyObject *arguments)
{
    PyObject *items;
    Whole whole = {0};
    if (!PyArg_ParseTuple(arguments, "OO!n", &items, &PyLong_Type, &whole.ts, &whole.room))
        return NULL;
    Py_INCREF(whole.ts);
    PyObject *all = PyObject_GetIter(items), *item;
    int added = all == NULL ? -1 : 1;
    while (added > 0 && (item = PyIter_Next(all)) != NULL) {
        added = add_item(&whole, item);
        Py_DECREF(item);
    }
    Py_XDECREF(all);
    PyObject *found =
        PyErr_Occurred() ? NULL : Py_BuildValue("nnnO", whole.count, whole.rows, whole.empty, whole.ts);
    Py_DECREF(whole.ts);
    return found;
}

/* --- numbers of changes ----------------------------------------------------------------------------------- */

typedef struct {
    PyObject *groups, *table, *op; /* the last two are of the group that isn't in the list yet */
    Py_ssize_t number;
} Counts;

static int end_group(Counts *counts)
{
    if (counts->table == NULL)
        return 0;
    PyObject *group = Py_BuildValue("OOn", counts->table, counts->op, counts->number);
    int failed = group == NULL || PyList_Append(counts->groups, group) < 0;
    Py_XDECREF(group);
    Py_CLEAR(counts->table);
    Py_CLEAR(counts->op);
    counts->number = 0;
    return failed ? -1 : 0;
}

static int add_changes(Counts *counts, PyObject *table, PyObject *op, Py_ssize_t number)
{
    if (number < 0 || table == NULL || op == NULL)
        return -1;
    if (table == counts->table && op == counts->op) {
        counts->number += number;
        return 0;
    }
    int same = table == counts->table ? PyObject_RichCompareBool(op, counts->op, Py_EQ) : 0;
    if (same < 0 || (!same && end_group(counts) < 0))
        return -1;
    if (!same) {
        counts->table = Py_NewRef(table);
        counts->op = Py_NewRef(op);
    }
    counts->number += number;
    return 0;
}

/* Count parts of a transaction, which are of a type with a table and an operation in those fields; `size` is
   the number of changes of each, or -1 to ask for it. */
static int add_parts(Counts *counts, PyObject *parts, PyTypeObject *type, int table, int op, Py_ssize_t size)
{
    PyObject *each = PySequence_Fast(parts, "the rows of a transaction are a sequence");
    if (each == NULL)
        return -1;
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < PySequence_Fast_GET_SIZE(each); i++) {
        PyObject *part = Py_NewRef(PySequence_Fast_GET_ITEM(each, i));
        if (PyObject_TypeCheck(part, type))
            failed = add_changes(counts, value_of(part, table), value_of(part, op),
                                 size < 0 ? PyObject_Size(part) : size) < 0;
        else {
            PyErr_Format(PyExc_TypeError, "a %s is expected, not a %s", type->tp_name, Py_TYPE(part)->tp_name);
            failed = 1;
        }
        Py_DECREF(part);
    }
    Py_DECREF(each);
    return failed ? -1 : 0;
}

static int add_transaction(Counts *counts, PyObject *item)
{
    if (!PyObject_TypeCheck(item, transaction_type)) {
        PyErr_Format(PyExc_TypeError, "a transaction is expected, not %R", item);
        return -1;
    }
    PyObject *rows = value_of(item, ROWS);
    if (rows == NULL)
        return -1;
    if (!Py_IS_TYPE(rows, rows_type))
        return add_parts(counts, rows, change_type, CHANGE_TABLE, CHANGE_OP, 1);
    PyObject *runs = value_of(rows, RUNS);
    Py_ssize_t count = runs == NULL ? -1 : PyObject_Size(runs);
    /* The number of an item's rows is known in most cases, that of a run's is found by each call. */
    Py_ssize_t size = count == 1 ? size_of(rows) : -1;
    return count < 0 || (count == 1 && size < 0) ? -1
                                                 : add_parts(counts, runs, run_type, RUN_TABLE, RUN_OP, size);
}

PyObject *counted_items(PyObject *module, PyObject *transactions)
{
    Counts counts = {.groups = PyList_New(0)};
    PyObject *all = counts.groups == NULL ? NULL : PyObject_GetIter(transactions), *item;
    int failed = all == NULL;
    while (!failed && (item = PyIter_Next(all)) != NULL) {
        failed = add_transaction(&counts, item) < 0;
        Py_DECREF(item);
    }
    Py_XDECREF(all);
    if (failed || PyErr_Occurred() || end_group(&counts) < 0)
        Py_CLEAR(counts.groups);
    Py_XDECREF(counts.table);
    Py_XDECREF(counts.op);
    return counts.groups;
}
