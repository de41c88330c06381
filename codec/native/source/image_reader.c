/* Changes of the row images of one table by one operation. */
#include "bytes.h"
#include "columns.h"
#include "reader.h"
#include "value.h"

#include <string.h>
#include <structmember.h>

typedef struct {
    Py_ssize_t count;
    uint8_t *has; /* for each column of the table */
} Image;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Maker maker;
    Image before, after;
    int is_update, is_delete;
} ImageReader;

/* Read one image. Columns that it doesn't have are those of `other`, or None. */
static PyObject *read_row(const ImageReader *reader, const Image *image, PyObject *other, Source *source)
{
    const Layout *layout = reader->maker.layout;
    const uint8_t *nulls = source->at;
    Py_ssize_t bitmap_bytes = (image->count + 7) / 8;
    if (source->end - nulls < bitmap_bytes)
        return unreadable(0, nulls - source->start);
    source->at += bitmap_bytes;
    PyObject *row = PyTuple_New(layout->visible);
    if (row == NULL)
        return NULL;
    Value value;
    Py_ssize_t place = 0, nth = 0;
    for (Py_ssize_t i = 0; i < layout->count; i++) {
        const Column *column = &layout->columns[i];
        PyObject *made = NULL;
        if (!image->has[i]) {
            if (!column->hidden)
                made = Py_NewRef(other == NULL ? Py_None : PyTuple_GET_ITEM(other, place));
        } else if (nulls[nth / 8] >> (nth % 8) & 1) {
            nth++;
            if (!column->nullable)
                goto failed;
            made = Py_NewRef(Py_None);
        } else {
            nth++;
            Outcome outcome = read_image_value(column, &source->at, source->end, &value);
            if (outcome == CUT)
                goto failed;
            made = object_of(column, &value, outcome);
            if (made == NULL) {
                Py_DECREF(row);
                return NULL;
            }
        }
        if (column->hidden)
            Py_XDECREF(made);
        else
            PyTuple_SET_ITEM(row, place++, made);
        continue;
    failed:
        Py_DECREF(row);
        return unreadable(i, source->at - source->start);
    }
    PyObject_GC_UnTrack(row); /* its values contain nothing: the collector needn't look at it */
    return row;
}

/* Read all images of the source as a list of changes. */
static PyObject *read_changes(const ImageReader *reader, Source *source)
{
    PyObject *changes = PyList_New(0);
    while (changes != NULL && source->at < source->end) {
        const uint8_t *begun = source->at;
        PyObject *before = NULL, *after = NULL, *row = read_row(reader, &reader->before, NULL, source);
        if (row == NULL) {
            Py_CLEAR(changes);
            break;
        }
        if (reader->is_update) {
            before = row;
            after = read_row(reader, &reader->after, before, source);
        } else if (reader->is_delete)
            before = row;
        else
            after = row;
        if ((reader->is_update && after == NULL) ||
            append_change(&reader->maker, source, changes, before, after) < 0)
            Py_CLEAR(changes);
        Py_XDECREF(before);
        Py_XDECREF(after);
        if (changes != NULL && source->at == begun) { /* rows of no bytes would never end */
            Py_CLEAR(changes);
            unreadable(0, source->at - source->start);
        }
    }
    return changes;
}

static PyObject *call_image_reader(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    Source source;
    if (names != NULL && PyTuple_GET_SIZE(names))
        return PyErr_Format(PyExc_TypeError, "an ImageReader takes no keywords");
    if (get_source(&source, arguments, PyVectorcall_NARGS(flags)) < 0)
        return NULL;
    return read_changes((ImageReader *)self, &source);
}

#define HEAD_BYTES 27   /* header, table id, flags */
#define EXTENSIBLE 30   /* from this type on, the head may contain more */
#define PARTIAL 39      /* its images may contain changes of documents */
#define CHECKSUM_BYTES 4

/* Return the reader of a rows event that has all columns, by its type, and set the source to its images; NULL
   without an exception for any other event. `readers` maps types to columns' bitmaps and readers. */
static ImageReader *reader_of(PyObject *readers, PyObject *event, Source *source)
{
    if (!PyBytes_CheckExact(event) || PyBytes_GET_SIZE(event) <= HEAD_BYTES + 2)
        return NULL;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(event), *end = start + PyBytes_GET_SIZE(event);
    int64_t left_out = (int64_t)little_endian(start + 9, 4) - (end - start);
    if (start[4] == PARTIAL || (left_out != 0 && left_out != CHECKSUM_BYTES))
        return NULL;
    PyObject *kind = PyLong_FromLong(start[4]);
    PyObject *found = kind == NULL ? NULL : PyDict_GetItemWithError(readers, kind);
    Py_XDECREF(kind);
    if (found == NULL || !PyTuple_CheckExact(found) || PyTuple_GET_SIZE(found) != 2)
        return NULL;
    PyObject *columns = PyTuple_GET_ITEM(found, 0), *reader = PyTuple_GET_ITEM(found, 1);
    if (!PyBytes_CheckExact(columns) || !Py_IS_TYPE(reader, &ImageReaderType))
        return NULL;
    const uint8_t *at = start + HEAD_BYTES;
    if (start[4] >= EXTENSIBLE)
        at += little_endian(at, 2);
    if (end - at < PyBytes_GET_SIZE(columns) ||
        memcmp(at, PyBytes_AS_STRING(columns), (size_t)PyBytes_GET_SIZE(columns)) != 0)
        return NULL;
    *source = (Source){start, at + PyBytes_GET_SIZE(columns), end, NULL, NULL};
    return (ImageReader *)Py_NewRef(reader);
}

PyObject *event_changes(PyObject *module, PyObject *arguments)
{
    PyObject *readers, *events, *commit_ts, *start_ts;
    if (!PyArg_ParseTuple(arguments, "O!O!O!O!", &PyDict_Type, &readers, &PyList_Type, &events, &PyList_Type,
                          &commit_ts, &PyList_Type, &start_ts))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(events);
    if (PyList_GET_SIZE(commit_ts) != count || PyList_GET_SIZE(start_ts) != count) {
        PyErr_SetString(PyExc_ValueError, "the events and their timestamps differ in number");
        return NULL;
    }
    PyObject *all = PyList_New(count);
    for (Py_ssize_t i = 0; all != NULL && i < count; i++) {
        Source source;
        PyObject *changes = NULL;
        ImageReader *reader = reader_of(readers, PyList_GET_ITEM(events, i), &source);
        if (reader != NULL) {
            source.commit_ts = PyList_GET_ITEM(commit_ts, i);
            source.start_ts = PyList_GET_ITEM(start_ts, i);
            changes = read_changes(reader, &source);
            Py_DECREF(reader);
        }
        if (changes == NULL && PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) {
                Py_CLEAR(all);
                break;
            }
            PyErr_Clear(); /* the caller reads this event by itself, and tells its place */
        }
        if (changes != NULL)
            PyObject_GC_UnTrack(changes); /* it contains nothing that the collector looks at */
        PyList_SET_ITEM(all, i, changes == NULL ? Py_NewRef(Py_None) : changes);
    }
    return all;
}

PyObject *event_counts(PyObject *module, PyObject *arguments)
{
    PyObject *readers, *events;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyDict_Type, &readers, &PyList_Type, &events))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(events);
    PyObject *counts = PyList_New(count);
    for (Py_ssize_t i = 0; counts != NULL && i < count; i++) {
        Source source;
        Py_ssize_t images = 0;
        ImageReader *reader = reader_of(readers, PyList_GET_ITEM(events, i), &source);
        if (reader == NULL || !skip_images(reader->maker.layout, source.at, source.end, &images) ||
            images == 0 || (reader->is_update && images % 2))
            images = -1;
        else if (reader->is_update)
            images /= 2;
        Py_XDECREF(reader);
        PyObject *number = PyErr_Occurred() ? NULL : PyLong_FromSsize_t(images);
        if (number == NULL)
            Py_CLEAR(counts);
        else
            PyList_SET_ITEM(counts, i, number);
    }
    return counts;
}

static int get_image(Image *image, PyObject *columns, Py_ssize_t count)
{
    image->count = PyTuple_GET_SIZE(columns);
    image->has = PyMem_Calloc((size_t)count + 1, 1);
    if (image->has == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t nth = 0, last = -1; nth < image->count; nth++) {
        Py_ssize_t column = PyLong_AsSsize_t(PyTuple_GET_ITEM(columns, nth));
        if (PyErr_Occurred())
            return -1;
        if (column <= last || column >= count) {
            PyErr_SetString(PyExc_ValueError, "an image's columns are numbers in ascending order");
            return -1;
        }
        last = column;
        image->has[column] = 1;
    }
    return 0;
}

static PyObject *new_image_reader(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *layout, *change, *table, *before, *after;
    const char *op;
    if (keywords != NULL && PyDict_GET_SIZE(keywords))
        return PyErr_Format(PyExc_TypeError, "ImageReader takes no keywords");
    if (!PyArg_ParseTuple(arguments, "O!OOsO!O!:ImageReader", &LayoutType, &layout, &change, &table, &op,
                          &PyTuple_Type, &before, &PyTuple_Type, &after))
        return NULL;
    ImageReader *reader = (ImageReader *)type->tp_alloc(type, 0);
    if (reader == NULL)
        return NULL;
    reader->call = call_image_reader;
    reader->maker = (Maker){(Layout *)Py_NewRef(layout), Py_NewRef(change), Py_NewRef(table),
                            PyUnicode_InternFromString(op)};
    reader->is_update = op[0] == 'u';
    reader->is_delete = op[0] == 'd';
    Py_ssize_t count = reader->maker.layout->count;
    if (reader->maker.op == NULL || get_image(&reader->before, before, count) < 0 ||
        get_image(&reader->after, after, count) < 0) {
        Py_DECREF(reader);
        return NULL;
    }
    return (PyObject *)reader;
}

static void free_image_reader(PyObject *self)
{
    ImageReader *reader = (ImageReader *)self;
    Py_XDECREF(reader->maker.layout);
    Py_XDECREF(reader->maker.change);
    Py_XDECREF(reader->maker.table);
    Py_XDECREF(reader->maker.op);
    PyMem_Free(reader->before.has);
    PyMem_Free(reader->after.has);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef image_reader_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ImageReader, call), READONLY, NULL},
    {NULL},
};

PyTypeObject ImageReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tidemill.codec.native._native.ImageReader",
    .tp_doc = "Maps (event, start and end of its row images, commit ts, start ts) to the changes they make.",
    .tp_basicsize = sizeof(ImageReader),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = new_image_reader,
    .tp_dealloc = free_image_reader,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(ImageReader, call),
    .tp_members = image_reader_members,
};
