/* The Python types of blocks and of their builders. */
#include "block.h"

#include <stdlib.h>
#include <string.h>

static PyObject *change_type; /* KvChange */

/* --- changes as Python objects ------------------------------------------------------------------------- */

static PyObject *bytes_of(const uint8_t *at, uint32_t size)
{
    return PyBytes_FromStringAndSize((const char *)at, size);
}

static PyObject *change_of(const Block *self, const Entry *entry)
{
    if (change_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "use_change wasn't called");
        return NULL;
    }
    const uint8_t *key = key_of(self->storage, entry), *value = key + entry->key_bytes;
    PyObject *parts[] = {
        NULL, /* room that PY_VECTORCALL_ARGUMENTS_OFFSET grants */
        PyLong_FromUnsignedLongLong(entry->commit_ts),
        PyLong_FromUnsignedLongLong(entry->start_ts),
        PyLong_FromLong(entry->owner & 1),
        bytes_of(key, entry->key_bytes),
        bytes_of(value, entry->value_bytes),
        bytes_of(value + entry->value_bytes, entry->old_bytes),
        PyLong_FromUnsignedLongLong(entry->origin),
    };
    enum { PARTS = 7 };
    int failed = 0;
    for (int i = 1; i <= PARTS; i++)
        failed |= parts[i] == NULL;
    PyObject *change = failed ? NULL
                              : PyObject_Vectorcall(change_type, parts + 1,
                                                    PARTS | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    for (int i = 1; i <= PARTS; i++)
        Py_XDECREF(parts[i]);
    return change;
}

/* --- the block ----------------------------------------------------------------------------------------- */

static PyObject *part_of(Storage *storage, const Entry *first, size_t count)
{
    Block *block = PyObject_New(Block, &BlockType);
    if (block == NULL)
        return NULL;
    storage->references++;
    block->storage = storage;
    block->first = first;
    block->count = count;
    block->content = 0;
    for (size_t i = 0; i < count; i++)
        block->content += content_bytes(&first[i]);
    return (PyObject *)block;
}

PyObject *new_block(Storage *storage)
{
    PyObject *block = part_of(storage, storage->entries, storage->count);
    drop_storage(storage);
    return block;
}

static void free_block(PyObject *self)
{
    drop_storage(((Block *)self)->storage);
    PyObject_Free(self);
}

static Py_ssize_t length(PyObject *self)
{
    return (Py_ssize_t)((Block *)self)->count;
}

static PyObject *item(PyObject *object, Py_ssize_t index)
{
    Block *self = (Block *)object;
    if (index < 0 || (size_t)index >= self->count) {
        PyErr_SetString(PyExc_IndexError, "a block has no such change");
        return NULL;
    }
    return change_of(self, &self->first[index]);
}

static PyObject *slice(PyObject *object, PyObject *const *arguments, Py_ssize_t given)
{
    Block *self = (Block *)object;
    if (given != 2) {
        PyErr_SetString(PyExc_TypeError, "slice takes start and stop");
        return NULL;
    }
    Py_ssize_t count = (Py_ssize_t)self->count;
    Py_ssize_t start = PyNumber_AsSsize_t(arguments[0], PyExc_IndexError);
    Py_ssize_t stop = PyNumber_AsSsize_t(arguments[1], PyExc_IndexError);
    if (PyErr_Occurred())
        return NULL;
    if (start < 0 || stop < start || stop > count) {
        PyErr_Format(PyExc_IndexError, "no part from %zd to %zd: the block has %zd changes", start, stop,
                     count);
        return NULL;
    }
    if (start == 0 && stop == count)
        return Py_NewRef(object);
    return part_of(self->storage, self->first + start, (size_t)(stop - start));
}

static int ts_from(PyObject *number, uint64_t *ts)
{
    *ts = PyLong_AsUnsignedLongLong(number);
    return *ts == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *find(PyObject *object, PyObject *const *arguments, Py_ssize_t given)
{
    Block *self = (Block *)object;
    Bound bound = {.key = (const uint8_t *)""};
    if (given != 1 && given != 4) {
        PyErr_SetString(PyExc_TypeError, "find takes a commit ts, and may take start ts, op and key");
        return NULL;
    }
    if (ts_from(arguments[0], &bound.commit_ts) < 0)
        return NULL;
    if (given == 4) {
        if (ts_from(arguments[1], &bound.start_ts) < 0)
            return NULL;
        bound.op = PyObject_IsTrue(arguments[2]);
        if (bound.op < 0)
            return NULL;
        if (!PyBytes_Check(arguments[3])) {
            PyErr_SetString(PyExc_TypeError, "a key is bytes");
            return NULL;
        }
        bound.key = (const uint8_t *)PyBytes_AS_STRING(arguments[3]);
        bound.key_bytes = (size_t)PyBytes_GET_SIZE(arguments[3]);
    }
    return PyLong_FromSize_t(find_bound(self->storage, self->first, self->count, &bound));
}

static PyObject *keyspaces(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Block *self = (Block *)object;
    PyObject *set = PySet_New(NULL);
    uint32_t last = 0;
    for (size_t i = 0; set != NULL && i < self->count; i++) {
        uint32_t keyspace = self->first[i].owner >> 1;
        if (i && keyspace == last)
            continue;
        last = keyspace;
        PyObject *number = PyLong_FromUnsignedLong(keyspace);
        if (number == NULL || PySet_Add(set, number) < 0)
            Py_CLEAR(set);
        Py_XDECREF(number);
    }
    return set;
}

/* Return 1 if the set of numbers has the keyspace, -1 with an exception. */
static int has(PyObject *set, uint32_t keyspace)
{
    PyObject *number = PyLong_FromUnsignedLong(keyspace);
    int found = number == NULL ? -1 : PySet_Contains(set, number);
    Py_XDECREF(number);
    return found;
}

/* Return a storage of the same chunks, with room for all entries of the block; NULL with an exception. */
static Storage *new_storage_beside(const Block *self)
{
    Storage *storage = new_storage(self->count);
    for (uint32_t i = 0; storage != NULL && i < self->storage->chunk_count; i++) {
        if (add_chunk(storage, self->storage->chunks[i]) < 0) {
            drop_storage(storage);
            storage = NULL;
        } else
            share_chunk(self->storage->chunks[i]);
    }
    if (storage == NULL)
        PyErr_NoMemory();
    return storage;
}

static PyObject *without(PyObject *object, PyObject *removed)
{
    Block *self = (Block *)object;
    if (!PyAnySet_Check(removed)) {
        PyErr_SetString(PyExc_TypeError, "keyspaces are a set");
        return NULL;
    }
    Storage *storage = new_storage_beside(self);
    if (storage == NULL)
        return NULL;
    int gone = 0;
    for (size_t i = 0; i < self->count; i++) {
        uint32_t owner = self->first[i].owner;
        if (i == 0 || owner >> 1 != self->first[i - 1].owner >> 1)
            gone = has(removed, owner >> 1);
        if (gone < 0) {
            drop_storage(storage);
            return NULL;
        }
        if (!gone)
            storage->entries[storage->count++] = self->first[i];
    }
    BlockPart kept = {storage, storage->entries, storage->count, -1};
    Storage *made;
    Py_BEGIN_ALLOW_THREADS
    made = merge_sources(&kept, 1); /* shares only what is left, or copies it */
    Py_END_ALLOW_THREADS
    drop_storage(storage);
    return made == NULL ? PyErr_NoMemory() : new_block(made);
}

static PyObject *compact(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Block *self = (Block *)object;
    size_t bytes = self->count * sizeof(Entry) + self->content;
    if (held_bytes(self->storage) <= 2 * bytes + SPARE)
        return Py_NewRef(object);
    BlockPart all = {self->storage, self->first, self->count, -1};
    Storage *made;
    Py_BEGIN_ALLOW_THREADS
    made = merge_sources(&all, 1);
    Py_END_ALLOW_THREADS
    return made == NULL ? PyErr_NoMemory() : new_block(made);
}

/* The begin of a key, and the number of its change in the block. */
typedef struct {
    const uint8_t *key;
    size_t size, index;
} Prefix;

static int compare_prefixes(const void *left, const void *right)
{
    const Prefix *a = left, *b = right;
    int order = memcmp(a->key, b->key, a->size < b->size ? a->size : b->size);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static int compare_prefixes_totally(const void *left, const void *right)
{
    const Prefix *a = left, *b = right;
    int order = compare_prefixes(a, b);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static Prefix prefix_of(const Block *self, size_t index, size_t size)
{
    const Entry *entry = &self->first[index];
    return (Prefix){key_of(self->storage, entry), entry->key_bytes < size ? entry->key_bytes : size, index};
}

/* Set the block of a prefix; takes over the reference to the block. */
static int set_part(PyObject *parts, const Prefix *prefix, PyObject *block)
{
    PyObject *name = bytes_of(prefix->key, (uint32_t)prefix->size);
    int failed = name == NULL || block == NULL || PyDict_SetItem(parts, name, block) < 0;
    Py_XDECREF(name);
    Py_XDECREF(block);
    return failed ? -1 : 0;
}

static int set_parts(PyObject *parts, const Block *self, Prefix *prefixes)
{
    Storage *storage = new_storage_beside(self);
    if (storage == NULL)
        return -1;
    qsort(prefixes, self->count, sizeof *prefixes, compare_prefixes_totally);
    for (size_t i = 0; i < self->count; i++)
        storage->entries[storage->count++] = self->first[prefixes[i].index];
    int failed = 0;
    for (size_t first = 0, i = 1; i <= self->count && !failed; i++)
        if (i == self->count || compare_prefixes(&prefixes[first], &prefixes[i])) {
            failed = set_part(parts, &prefixes[first], part_of(storage, storage->entries + first, i - first));
            first = i;
        }
    drop_storage(storage);
    return failed;
}

static PyObject *by_prefix(PyObject *object, PyObject *given)
{
    Block *self = (Block *)object;
    Py_ssize_t size = PyNumber_AsSsize_t(given, PyExc_OverflowError);
    if (size < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a prefix has 0 bytes or more");
        return NULL;
    }
    PyObject *parts = PyDict_New();
    if (parts == NULL || self->count == 0)
        return parts;
    Prefix *prefixes = PyMem_Malloc(self->count * sizeof *prefixes);
    if (prefixes == NULL) {
        Py_DECREF(parts);
        return PyErr_NoMemory();
    }
    int differ = 0;
    for (size_t i = 0; i < self->count; i++) {
        prefixes[i] = prefix_of(self, i, (size_t)size);
        differ |= compare_prefixes(&prefixes[0], &prefixes[i]);
    }
    if (differ ? set_parts(parts, self, prefixes) : set_part(parts, &prefixes[0], Py_NewRef(object)))
        Py_CLEAR(parts);
    PyMem_Free(prefixes);
    return parts;
}

static PyObject *to_bytes(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Block *self = (Block *)object;
    return block_to_bytes(self->storage, self->first, self->count);
}

static PyObject *get_bytes(PyObject *object, void *Py_UNUSED(nothing))
{
    Block *self = (Block *)object;
    return PyLong_FromSize_t(self->count * sizeof(Entry) + self->content);
}

static PyObject *get_held_bytes(PyObject *object, void *Py_UNUSED(nothing))
{
    return PyLong_FromSize_t(held_bytes(((Block *)object)->storage));
}

static PyObject *ts_at(const Block *self, size_t index)
{
    return PyLong_FromUnsignedLongLong(self->count ? self->first[index].commit_ts : 0);
}

static PyObject *get_first_ts(PyObject *object, void *Py_UNUSED(nothing))
{
    return ts_at((Block *)object, 0);
}

static PyObject *get_last_ts(PyObject *object, void *Py_UNUSED(nothing))
{
    return ts_at((Block *)object, ((Block *)object)->count - 1);
}

static PyMethodDef block_methods[] = {
    {"slice", (PyCFunction)(void (*)(void))slice, METH_FASTCALL, "Return the changes from start to stop."},
    {"find", (PyCFunction)(void (*)(void))find, METH_FASTCALL, "Return where the changes from a bound on are."},
    {"compact", compact, METH_NOARGS, "Return it copied if it holds much more than its changes."},
    {"keyspaces", keyspaces, METH_NOARGS, "Return the keyspaces that have changes."},
    {"without", without, METH_O, "Return the changes of other keyspaces."},
    {"by_prefix", by_prefix, METH_O, "Return the changes by the begin of their keys."},
    {"to_bytes", to_bytes, METH_NOARGS, "Return the block as it is kept on disk."},
    {NULL},
};

static PyGetSetDef block_attributes[] = {
    {"bytes", get_bytes, NULL, "Bytes of its entries, keys and values.", NULL},
    {"held_bytes", get_held_bytes, NULL, "Bytes of memory that stay as long as it does.", NULL},
    {"first_ts", get_first_ts, NULL, "The lowest commit ts; 0 without changes.", NULL},
    {"last_ts", get_last_ts, NULL, "The highest commit ts; 0 without changes.", NULL},
    {NULL},
};

static PySequenceMethods block_sequence = {.sq_length = length, .sq_item = item};

PyTypeObject BlockType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tidemill.codec.native._native.Block",
    .tp_basicsize = sizeof(Block),
    .tp_dealloc = free_block,
    .tp_as_sequence = &block_sequence,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_SEQUENCE,
    .tp_doc = "Changes in commit order, packed.",
    .tp_methods = block_methods,
    .tp_getset = block_attributes,
};

/* --- the builder --------------------------------------------------------------------------------------- */

Storage *storage_of_builder(BlockBuilder *builder)
{
    if (builder->storage == NULL && (builder->storage = new_storage(0)) == NULL)
        PyErr_NoMemory();
    return builder->storage;
}

static PyObject *new_builder(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(arguments) || (keywords != NULL && PyDict_GET_SIZE(keywords))) {
        PyErr_SetString(PyExc_TypeError, "a builder takes no arguments");
        return NULL;
    }
    return type->tp_alloc(type, 0); /* zeros */
}

static void free_builder(PyObject *self)
{
    drop_storage(((BlockBuilder *)self)->storage);
    Py_TYPE(self)->tp_free(self);
}

typedef struct {
    const uint8_t *at;
    uint32_t size;
} Content;

static int content_from(PyObject *object, const char *name, Content *content)
{
    if (!PyBytes_Check(object) || PyBytes_GET_SIZE(object) > UINT32_MAX) {
        PyErr_Format(PyExc_TypeError, "%s: bytes of less than 4 GiB", name);
        return -1;
    }
    *content = (Content){(const uint8_t *)PyBytes_AS_STRING(object), (uint32_t)PyBytes_GET_SIZE(object)};
    return 0;
}

/* Add a change; -1 with an exception. */
static int put(BlockBuilder *self, Entry entry, Content key, Content value, Content old)
{
    Storage *storage = storage_of_builder(self);
    if (storage == NULL)
        return -1;
    entry.key_bytes = key.size;
    entry.value_bytes = value.size;
    entry.old_bytes = old.size;
    if (put_entry(storage, entry, key.at, value.at, old.at) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    self->content += content_bytes(&entry);
    return 0;
}

static PyObject *add(PyObject *object, PyObject *const *arguments, Py_ssize_t given)
{
    BlockBuilder *self = (BlockBuilder *)object;
    enum { COMMIT_TS, START_TS, OP, KEY, VALUE, OLD_VALUE, ORIGIN };
    if (given <= VALUE || given > ORIGIN + 1) {
        PyErr_SetString(PyExc_TypeError, "add takes commit ts, start ts, op, key, value, old value and origin");
        return NULL;
    }
    Entry entry = {0};
    Content key, value, old = {(const uint8_t *)"", 0};
    long op = PyLong_AsLong(arguments[OP]);
    if (PyErr_Occurred() || ts_from(arguments[COMMIT_TS], &entry.commit_ts) < 0 ||
        ts_from(arguments[START_TS], &entry.start_ts) < 0 || content_from(arguments[KEY], "key", &key) < 0 ||
        content_from(arguments[VALUE], "value", &value) < 0 ||
        (given > OLD_VALUE && content_from(arguments[OLD_VALUE], "old value", &old) < 0) ||
        (given > ORIGIN && ts_from(arguments[ORIGIN], &entry.origin) < 0))
        return NULL;
    if (op != 0 && op != 1) {
        PyErr_Format(PyExc_ValueError, "op: %ld is neither DELETE (0) nor PUT (1)", op);
        return NULL;
    }
    entry.owner = (uint32_t)op;
    return put(self, entry, key, value, old) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *add_rows(PyObject *object, PyObject *const *arguments, Py_ssize_t given)
{
    Entry entry = {.owner = 1};
    if (given != 3 || !PyList_Check(arguments[1]) || !PyList_Check(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "add_rows takes a ts, a list of keys and a list of values");
        return NULL;
    }
    if (PyList_GET_SIZE(arguments[1]) != PyList_GET_SIZE(arguments[2])) {
        PyErr_SetString(PyExc_ValueError, "there is a value for each key");
        return NULL;
    }
    if (ts_from(arguments[0], &entry.commit_ts) < 0)
        return NULL;
    entry.start_ts = entry.commit_ts;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arguments[1]); i++) {
        Content key, value, old = {(const uint8_t *)"", 0};
        if (content_from(PyList_GET_ITEM(arguments[1], i), "key", &key) < 0 ||
            content_from(PyList_GET_ITEM(arguments[2], i), "value", &value) < 0 ||
            put((BlockBuilder *)object, entry, key, value, old) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *extend(PyObject *object, PyObject *given)
{
    static const char *const TEXTS[] = {"commit_ts", "start_ts", "op", "key", "value", "old_value", "region_id"};
    enum { PARTS = sizeof TEXTS / sizeof *TEXTS };
    static PyObject *names[PARTS];
    for (int part = 0; part < PARTS; part++)
        if (names[part] == NULL && (names[part] = PyUnicode_InternFromString(TEXTS[part])) == NULL)
            return NULL;
    PyObject *changes = PyObject_GetIter(given), *change;
    if (changes == NULL)
        return NULL;
    while ((change = PyIter_Next(changes)) != NULL) {
        PyObject *parts[PARTS] = {0}, *added = NULL;
        int got = 0;
        while (got < PARTS && (parts[got] = PyObject_GetAttr(change, names[got])) != NULL)
            got++;
        if (got == PARTS)
            added = add(object, parts, PARTS);
        while (got)
            Py_DECREF(parts[--got]);
        Py_DECREF(change);
        if (added == NULL)
            break;
        Py_DECREF(added);
    }
    Py_DECREF(changes);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *take(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    BlockBuilder *self = (BlockBuilder *)object;
    Storage *storage = storage_of_builder(self);
    if (storage == NULL)
        return NULL;
    size_t bytes = storage->count * sizeof(Entry) + self->content;
    self->storage = NULL;
    self->content = 0;
    int is_ordered, holds_much = 0;
    Storage *made = NULL;
    Py_BEGIN_ALLOW_THREADS
    is_ordered = is_in_order(storage) || order_storage(storage) == 0;
    holds_much = is_ordered && held_bytes(storage) > 2 * bytes + SPARE; /* chunks may be shared */
    if (holds_much) {
        BlockPart all = {storage, storage->entries, storage->count, -1};
        made = merge_sources(&all, 1);
    } else if (is_ordered)
        trim_storage(storage);
    Py_END_ALLOW_THREADS
    if (is_ordered && !holds_much)
        return new_block(storage);
    drop_storage(storage);
    return made == NULL ? PyErr_NoMemory() : new_block(made);
}

static Py_ssize_t builder_length(PyObject *self)
{
    const Storage *storage = ((BlockBuilder *)self)->storage;
    return storage == NULL ? 0 : (Py_ssize_t)storage->count;
}

static PyObject *get_builder_bytes(PyObject *self, void *Py_UNUSED(nothing))
{
    return PyLong_FromSize_t((size_t)builder_length(self) * sizeof(Entry) + ((BlockBuilder *)self)->content);
}

static PyMethodDef builder_methods[] = {
    {"add", (PyCFunction)(void (*)(void))add, METH_FASTCALL, "Add a change."},
    {"add_rows", (PyCFunction)(void (*)(void))add_rows, METH_FASTCALL, "Add rows as of a ts."},
    {"extend", extend, METH_O, "Add changes (KvChange)."},
    {"take", take, METH_NOARGS, "Return what was added as a block; the builder is empty then."},
    {NULL},
};

static PyGetSetDef builder_attributes[] = {
    {"bytes", get_builder_bytes, NULL, "Bytes of its entries, keys and values.", NULL},
    {NULL},
};

static PySequenceMethods builder_sequence = {.sq_length = builder_length};

PyTypeObject BlockBuilderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tidemill.codec.native._native.BlockBuilder",
    .tp_basicsize = sizeof(BlockBuilder),
    .tp_new = new_builder,
    .tp_dealloc = free_builder,
    .tp_as_sequence = &builder_sequence,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Makes a block of changes in any order.",
    .tp_methods = builder_methods,
    .tp_getset = builder_attributes,
};

/* --- functions ----------------------------------------------------------------------------------------- */

static int source_of(PyObject *block, PyObject *keyspace, BlockPart *source)
{
    if (!Py_IS_TYPE(block, &BlockType)) {
        PyErr_SetString(PyExc_TypeError, "only blocks can be merged");
        return -1;
    }
    const Block *its = (Block *)block;
    *source = (BlockPart){its->storage, its->first, its->count, -1};
    if (keyspace != NULL) {
        long number = PyLong_AsLong(keyspace);
        if (number == -1 && PyErr_Occurred())
            return -1;
        if (number < 0 || number > MAX_KEYSPACE) {
            PyErr_Format(PyExc_ValueError, "keyspace: %ld isn't from 0 to %d", number, (int)MAX_KEYSPACE);
            return -1;
        }
        source->keyspace = number;
    }
    return 0;
}

static PyObject *merged(PyObject *blocks, PyObject *keyspaces)
{
    Py_ssize_t count = PyTuple_GET_SIZE(blocks);
    if (count == 1 && keyspaces == NULL && Py_IS_TYPE(PyTuple_GET_ITEM(blocks, 0), &BlockType))
        return Py_NewRef(PyTuple_GET_ITEM(blocks, 0));
    BlockPart *sources = PyMem_Calloc((size_t)count + 1, sizeof *sources);
    if (sources == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *keyspace = keyspaces == NULL ? NULL : PyTuple_GET_ITEM(keyspaces, i);
        if (source_of(PyTuple_GET_ITEM(blocks, i), keyspace, &sources[i]) < 0) {
            PyMem_Free(sources);
            return NULL;
        }
    }
    Storage *made;
    Py_BEGIN_ALLOW_THREADS
    made = merge_sources(sources, (size_t)count);
    Py_END_ALLOW_THREADS
    PyMem_Free(sources);
    return made == NULL ? PyErr_NoMemory() : new_block(made);
}

PyObject *merge_blocks(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 1 && given != 2) {
        PyErr_SetString(PyExc_TypeError, "merge_blocks takes blocks, and may take their keyspaces");
        return NULL;
    }
    PyObject *blocks = PySequence_Tuple(arguments[0]); /* which nobody changes meanwhile */
    PyObject *keyspaces = given == 2 ? PySequence_Tuple(arguments[1]) : NULL, *made = NULL;
    if (blocks != NULL && (given == 1 || keyspaces != NULL)) {
        if (keyspaces != NULL && PyTuple_GET_SIZE(keyspaces) != PyTuple_GET_SIZE(blocks))
            PyErr_SetString(PyExc_ValueError, "each block has one keyspace");
        else
            made = merged(blocks, keyspaces);
    }
    Py_XDECREF(blocks);
    Py_XDECREF(keyspaces);
    return made;
}

PyObject *block_from_bytes(PyObject *Py_UNUSED(module), PyObject *data)
{
    PyObject *bytes = PyBytes_CheckExact(data) ? Py_NewRef(data) : PyBytes_FromObject(data);
    Storage *storage = bytes == NULL ? NULL : storage_of_bytes(bytes);
    Py_XDECREF(bytes);
    return storage == NULL ? NULL : new_block(storage);
}

PyObject *use_change(PyObject *Py_UNUSED(module), PyObject *type)
{
    Py_XSETREF(change_type, Py_NewRef(type));
    Py_RETURN_NONE;
}
