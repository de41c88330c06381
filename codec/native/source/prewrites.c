#include "prewrites.h"
#include "change_data.h"

#include <string.h>

enum { TAKEN = 1 };
enum {
    LEAST_ENTRIES = 8,
    LEAST_CHUNK = 1 << 12, /* for prewrites that come one by one */
    MOST_CHUNK = 1 << 16,
    MANY = 128 /* rows after which the GIL is released */
};
enum { NO_MEMORY = -1, STOP, DONE };

static uint64_t secrets[2]; /* so that nobody can choose keys of the same hash */

typedef struct {
    uint64_t start_ts, hash;
    const uint8_t *key;
    uint32_t key_bytes;
} Wanted;

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static Wanted wanted(uint64_t start_ts, const uint8_t *key, uint32_t key_bytes)
{
    uint64_t hash = mix(start_ts ^ secrets[0], secrets[1] ^ key_bytes), word;
    uint32_t at = 0;
    for (; key_bytes - at >= sizeof word; at += sizeof word) {
        memcpy(&word, key + at, sizeof word);
        hash = mix(hash ^ word, secrets[1]);
    }
    word = 0;
    memcpy(&word, key + at, key_bytes - at);
    return (Wanted){start_ts, mix(hash ^ word, secrets[1]), key, key_bytes};
}

/* --- slots --------------------------------------------------------------------------------------------- */

/* Return the slot of a prewrite, or the free one where it would be. */
static uint32_t *slot_of(const PrewriteTable *self, const Wanted *wanted)
{
    for (size_t slot = wanted->hash;; slot++) {
        uint32_t *found = &self->slots[slot & (self->slot_count - 1)];
        if (*found == 0)
            return found;
        const Entry *entry = &self->storage->entries[*found - 1];
        if (entry->commit_ts == wanted->hash && entry->start_ts == wanted->start_ts &&
            entry->key_bytes == wanted->key_bytes &&
            memcmp(key_of(self->storage, entry), wanted->key, wanted->key_bytes) == 0)
            return found;
    }
}

/* Return the slot of a prewrite, or NULL. */
static uint32_t *find(const PrewriteTable *self, const Wanted *wanted)
{
    uint32_t *slot = self->waiting ? slot_of(self, wanted) : NULL;
    return slot != NULL && *slot ? slot : NULL;
}

/* Free a slot, and move those there that are found by way of it. */
static void free_slot(PrewriteTable *self, uint32_t *slot)
{
    size_t mask = self->slot_count - 1, hole = (size_t)(slot - self->slots);
    for (size_t next = (hole + 1) & mask; self->slots[next]; next = (next + 1) & mask) {
        size_t home = self->storage->entries[self->slots[next] - 1].commit_ts;
        if (((next - home) & mask) >= ((next - hole) & mask)) {
            self->slots[hole] = self->slots[next];
            hole = next;
        }
    }
    self->slots[hole] = 0;
}

static void index_entries(PrewriteTable *self)
{
    const Storage *storage = self->storage;
    for (size_t i = 0; i < storage->count; i++) {
        size_t slot = storage->entries[i].commit_ts & (self->slot_count - 1);
        while (self->slots[slot])
            slot = (slot + 1) & (self->slot_count - 1);
        self->slots[slot] = (uint32_t)i + 1;
    }
}

/* --- memory -------------------------------------------------------------------------------------------- */

static size_t table_bytes(const PrewriteTable *self)
{
    const Storage *storage = self->storage;
    return storage == NULL ? 0
                           : sizeof *storage + storage->room * sizeof(Entry) +
                                 storage->chunk_room * sizeof(Chunk *) + self->slot_count * sizeof *self->slots +
                                 self->chunk_bytes;
}

static void clear(PrewriteTable *self)
{
    drop_storage(self->storage);
    PyMem_RawFree(self->slots);
    self->storage = NULL;
    self->slots = NULL;
    self->slot_count = self->waiting = self->content = self->chunk_bytes = 0;
}

/* Move the entries that wait, and the chunks they are in, to the front of their arrays. */
static int squeeze(Storage *storage)
{
    uint32_t *numbers = PyMem_RawMalloc((storage->chunk_count + 1) * sizeof *numbers), chunks = 0;
    if (numbers == NULL)
        return -1;
    for (uint32_t i = 0; i < storage->chunk_count; i++) {
        numbers[i] = chunks;
        if (storage->chunks[i] != NULL)
            storage->chunks[chunks++] = storage->chunks[i];
    }
    storage->chunk_count = chunks;
    size_t count = 0;
    for (size_t i = 0; i < storage->count; i++)
        if (storage->entries[i].owner != TAKEN) {
            storage->entries[count] = storage->entries[i];
            storage->entries[count].chunk = numbers[storage->entries[count].chunk];
            count++;
        }
    storage->count = count;
    PyMem_RawFree(numbers);
    return 0;
}

/* Return the bytes of the entries that wait from one on, at most of a chunk or of one entry. */
static size_t bytes_from(const Storage *storage, size_t first)
{
    size_t size = content_bytes(&storage->entries[first]);
    for (size_t i = first + 1; i < storage->count; i++)
        if (storage->entries[i].owner != TAKEN) {
            if (size + content_bytes(&storage->entries[i]) > MOST_CHUNK)
                break;
            size += content_bytes(&storage->entries[i]);
        }
    return size;
}

/* Return a storage of the entries that wait, with their contents copied. */
static Storage *copied(const Storage *storage, size_t room)
{
    Storage *made = new_storage(room);
    Chunk *chunk = NULL;
    for (size_t i = 0; made != NULL && i < storage->count; i++) {
        const Entry *entry = &storage->entries[i];
        if (entry->owner == TAKEN)
            continue;
        if (chunk == NULL || chunk->room - chunk->size < content_bytes(entry)) {
            chunk = new_chunk(bytes_from(storage, i));
            if (chunk == NULL || add_chunk(made, chunk) < 0) {
                drop_chunk(chunk);
                drop_storage(made);
                return NULL;
            }
        }
        Entry *its = &made->entries[made->count++];
        *its = *entry;
        its->chunk = made->chunk_count - 1;
        its->at = (uint32_t)chunk->size;
        memcpy(chunk->own + chunk->size, key_of(storage, entry), content_bytes(entry));
        chunk->size += content_bytes(entry);
        chunk->waiting++;
    }
    return made;
}

static int is_waste(const PrewriteTable *self)
{
    return self->chunk_bytes > 2 * self->content + SPARE;
}

/* Make room for `more` entries or half of those there, without those that were taken; copy contents that keep too
   much memory. */
static int rebuild(PrewriteTable *self, size_t more)
{
    size_t half = self->waiting / 2, room = self->waiting + (more > half ? more : half);
    size_t slot_count = 2 * LEAST_ENTRIES;
    room = room < LEAST_ENTRIES ? LEAST_ENTRIES : room;
    while (slot_count < 2 * room)
        slot_count *= 2;
    if (room >= UINT32_MAX)
        return -1;
    uint32_t *slots = PyMem_RawCalloc(slot_count, sizeof *slots);
    Storage *made = slots == NULL           ? NULL
                    : self->storage == NULL ? new_storage(room)
                    : is_waste(self)        ? copied(self->storage, room)
                                            : self->storage;
    if (made == NULL || (made == self->storage && squeeze(made) < 0)) {
        PyMem_RawFree(slots);
        return -1;
    }
    if (made != self->storage) {
        drop_storage(self->storage);
        self->storage = made;
        self->chunk_bytes = 0;
        for (uint32_t i = 0; i < made->chunk_count; i++)
            self->chunk_bytes += sizeof(Chunk) + made->chunks[i]->room;
    }
    PyMem_RawFree(self->slots);
    self->slots = slots;
    self->slot_count = slot_count;
    index_entries(self);
    Entry *entries = made->room == room ? made->entries : PyMem_RawRealloc(made->entries, room * sizeof *entries);
    if (entries == NULL)
        return -1; /* it is whole, without more room */
    made->entries = entries;
    made->room = room;
    return 0;
}

static int make_room(PrewriteTable *self, size_t more)
{
    const Storage *storage = self->storage;
    int has_room = storage != NULL && storage->room - storage->count >= more &&
                   2 * (self->waiting + more) <= self->slot_count;
    return has_room ? 0 : rebuild(self, more);
}

/* Give memory back after entries were taken. */
static int settle(PrewriteTable *self)
{
    if (self->waiting == 0)
        clear(self);
    else if (is_waste(self) || self->storage->room > 3 * self->waiting + MANY)
        return rebuild(self, 0);
    return 0;
}

/* --- single prewrites ---------------------------------------------------------------------------------- */

/* Drop the prewrite of a slot. */
static void drop(PrewriteTable *self, uint32_t *slot)
{
    Storage *storage = self->storage;
    Entry *entry = &storage->entries[*slot - 1];
    Chunk *chunk = storage->chunks[entry->chunk];
    free_slot(self, slot);
    entry->owner = TAKEN;
    self->waiting--;
    self->content -= content_bytes(entry);
    if (--chunk->waiting == 0) {
        self->chunk_bytes -= sizeof *chunk + chunk->room;
        storage->chunks[entry->chunk] = NULL;
        drop_chunk(chunk);
    }
}

/* Return the last chunk if it has that much room, or a new one; NULL without memory. Others may read it: the
   bytes that they know aren't written. */
static Chunk *chunk_for(PrewriteTable *self, size_t size, size_t room)
{
    Storage *storage = self->storage;
    Chunk *last = storage->chunk_count ? storage->chunks[storage->chunk_count - 1] : NULL;
    if (last != NULL && last->room - last->size >= size)
        return last;
    Chunk *chunk = new_chunk(room > size ? room : size);
    if (chunk != NULL && add_chunk(storage, chunk) < 0) {
        drop_chunk(chunk);
        return NULL;
    }
    if (chunk != NULL)
        self->chunk_bytes += sizeof *chunk + chunk->room;
    return chunk;
}

static inline size_t row_bytes(const FeedRow *row)
{
    return (size_t)row->key_bytes + row->value_bytes + row->old_bytes;
}

/* Store a prewrite; there is room for its entry. `room` is the least size of a new chunk. */
static int store(PrewriteTable *self, uint32_t *slot, const Wanted *wanted, const FeedRow *row, size_t room)
{
    Chunk *chunk = chunk_for(self, row_bytes(row), room);
    if (chunk == NULL)
        return -1;
    Storage *storage = self->storage;
    uint8_t *into = chunk->own + chunk->size;
    memcpy(into, row->key, row->key_bytes);
    memcpy(into += row->key_bytes, row->value, row->value_bytes);
    memcpy(into += row->value_bytes, row->old_value, row->old_bytes);
    storage->entries[storage->count++] = (Entry){
        .commit_ts = wanted->hash,
        .start_ts = wanted->start_ts,
        .origin = row->generation,
        .chunk = storage->chunk_count - 1,
        .at = (uint32_t)chunk->size,
        .key_bytes = row->key_bytes,
        .value_bytes = row->value_bytes,
        .old_bytes = row->old_bytes,
    };
    *slot = (uint32_t)storage->count;
    chunk->size += row_bytes(row);
    chunk->waiting++;
    self->waiting++;
    self->content += row_bytes(row);
    return 0;
}

static int is_same(const Storage *storage, const Entry *entry, const FeedRow *row)
{
    const uint8_t *value = key_of(storage, entry) + entry->key_bytes;
    return entry->origin == row->generation && entry->value_bytes == row->value_bytes &&
           entry->old_bytes == row->old_bytes && memcmp(value, row->value, row->value_bytes) == 0 &&
           memcmp(value + entry->value_bytes, row->old_value, row->old_bytes) == 0;
}

/* Store a prewrite, unless it is there, or one that takes precedence: of a higher generation, or of the same one if
   this has no value. A fake one never replaces another. */
static int put_row(PrewriteTable *self, const FeedRow *row, int is_fake, size_t room)
{
    Wanted its = wanted(row->start_ts, row->key, row->key_bytes);
    uint32_t *slot = slot_of(self, &its);
    if (*slot) {
        const Entry *entry = &self->storage->entries[*slot - 1];
        uint64_t generation = entry->origin;
        if (is_fake || is_same(self->storage, entry, row) || row->generation < generation || (row->generation == generation && !row->value_bytes))
            return 0;
        drop(self, slot);
        slot = slot_of(self, &its);
    }
    return store(self, slot, &its, row, room);
}

/* --- rows of an event ---------------------------------------------------------------------------------- */

typedef struct {
    PrewriteTable *table;
    BlockBuilder *builder;
    uint64_t region_id, start_ts, resolved_ts;
    int is_initialised;
    const uint8_t *lower, *upper; /* NULL if all keys are inside */
    size_t lower_bytes, upper_bytes;
    const FeedRow *row, *end;
    size_t room;            /* for entries of prewrites */
    uint32_t chunk, number; /* the table's number of a chunk, and the builder's; valid if `has_chunk` */
    int has_chunk;
} Matching;

static int is_below(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
    int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order < 0 || (order == 0 && a_bytes < b_bytes);
}

static int is_inside(const Matching *m, const FeedRow *row)
{
    return m->lower == NULL || (!is_below(row->key, row->key_bytes, m->lower, m->lower_bytes) &&
                                is_below(row->key, row->key_bytes, m->upper, m->upper_bytes));
}

/* Return the bytes of the prewrites that follow, for which one chunk is made. */
static size_t bytes_that_follow(const Matching *m)
{
    size_t size = 0;
    for (const FeedRow *row = m->row; row < m->end && row->type == PREWRITE; row++) {
        if (size + row_bytes(row) > MOST_CHUNK)
            break;
        size += row_bytes(row);
    }
    return size;
}

static int match_prewrite(Matching *m, const FeedRow *row)
{
    if (m->room == 0) {
        while (row + m->room < m->end && row[m->room].type == PREWRITE)
            m->room++;
        if (make_room(m->table, m->room) < 0)
            return NO_MEMORY;
        m->has_chunk = 0; /* their numbers changed */
    }
    m->room--;
    const Storage *storage = m->table->storage;
    const Chunk *last = storage->chunk_count ? storage->chunks[storage->chunk_count - 1] : NULL;
    size_t room = last != NULL && last->room - last->size >= row_bytes(row) ? 0 : bytes_that_follow(m);
    return put_row(m->table, row, row->op == ROW_PUT && !row->value_bytes, room) < 0 ? NO_MEMORY : DONE;
}

static Entry change_of(const Matching *m, const FeedRow *row)
{
    return (Entry){
        .commit_ts = row->commit_ts, .start_ts = row->start_ts, .origin = m->region_id, .owner = row->op == ROW_PUT,
    };
}

/* False if the op is unknown, or the commit ts must not be: then the rules in Python raise an error. */
static int is_regular(const Matching *m, const FeedRow *row)
{
    int is_known = row->op == ROW_PUT || row->op == ROW_DELETE;
    return is_known && (row->commit_ts <= m->start_ts || row->commit_ts > m->resolved_ts);
}

/* Have the builder share the table's chunk. */
static int share(Matching *m, uint32_t chunk)
{
    if (m->has_chunk && m->chunk == chunk)
        return 0;
    Storage *into = m->builder->storage;
    Chunk *shared = m->table->storage->chunks[chunk];
    int64_t number = (int64_t)into->chunk_count - 1;
    while (number >= 0 && number + 8 >= into->chunk_count && into->chunks[number] != shared)
        number--;
    if (number < 0 || into->chunks[number] != shared) {
        if ((number = add_chunk(into, shared)) < 0)
            return -1;
        share_chunk(shared);
    }
    m->has_chunk = 1;
    m->chunk = chunk;
    m->number = (uint32_t)number;
    return 0;
}

static int match_commit(Matching *m, const FeedRow *row)
{
    Wanted its = wanted(row->start_ts, row->key, row->key_bytes);
    uint32_t *slot = m->is_initialised && is_regular(m, row) ? find(m->table, &its) : NULL;
    if (slot == NULL)
        return STOP;
    if (row->commit_ts > m->start_ts) {
        const Entry *prewrite = &m->table->storage->entries[*slot - 1];
        Entry entry = change_of(m, row);
        if (share(m, prewrite->chunk) < 0)
            return NO_MEMORY;
        entry.chunk = m->number;
        entry.at = prewrite->at;
        entry.key_bytes = prewrite->key_bytes;
        entry.value_bytes = prewrite->value_bytes;
        entry.old_bytes = prewrite->old_bytes;
        if (add_entry(m->builder->storage, &entry) < 0)
            return NO_MEMORY;
        m->builder->content += content_bytes(&entry);
    }
    drop(m->table, slot);
    return DONE;
}

static int match_rollback(Matching *m, const FeedRow *row)
{
    if (!m->is_initialised)
        return STOP;
    Wanted its = wanted(row->start_ts, row->key, row->key_bytes);
    uint32_t *slot = find(m->table, &its);
    if (slot != NULL)
        drop(m->table, slot);
    return DONE;
}

static int match_committed(Matching *m, const FeedRow *row)
{
    if (row->commit_ts <= m->start_ts)
        return DONE;
    if (!is_regular(m, row))
        return STOP;
    Entry entry = change_of(m, row);
    entry.key_bytes = row->key_bytes;
    entry.value_bytes = row->value_bytes;
    entry.old_bytes = row->old_bytes;
    if (put_entry(m->builder->storage, entry, row->key, row->value, row->old_value) < 0)
        return NO_MEMORY;
    m->builder->content += content_bytes(&entry);
    return DONE;
}

static int match_row(Matching *m, const FeedRow *row)
{
    if (row->type < PREWRITE || row->type > COMMITTED)
        return STOP;
    if (!is_inside(m, row))
        return DONE;
    switch (row->type) {
    case PREWRITE:
        return match_prewrite(m, row);
    case COMMIT:
        return match_commit(m, row);
    case ROLLBACK:
        return match_rollback(m, row);
    default:
        return match_committed(m, row);
    }
}

/* Match rows until `end`, or until one that isn't regular. */
static int match_rows(Matching *m, const FeedRow *end)
{
    int done = DONE;
    for (; m->row < end; m->row++)
        if ((done = match_row(m, m->row)) != DONE)
            break;
    return done;
}

static int number_from(PyObject *number, uint64_t *into)
{
    *into = PyLong_AsUnsignedLongLong(number);
    return *into == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

static int bounds_from(PyObject *bounds, Matching *m)
{
    if (bounds == Py_None)
        return 0;
    if (!PyTuple_Check(bounds) || PyTuple_GET_SIZE(bounds) != 2 || !PyBytes_Check(PyTuple_GET_ITEM(bounds, 0)) ||
        !PyBytes_Check(PyTuple_GET_ITEM(bounds, 1))) {
        PyErr_SetString(PyExc_TypeError, "bounds are two keys, or None");
        return -1;
    }
    PyObject *lower = PyTuple_GET_ITEM(bounds, 0), *upper = PyTuple_GET_ITEM(bounds, 1);
    m->lower = (const uint8_t *)PyBytes_AS_STRING(lower);
    m->lower_bytes = (size_t)PyBytes_GET_SIZE(lower);
    m->upper = (const uint8_t *)PyBytes_AS_STRING(upper);
    m->upper_bytes = (size_t)PyBytes_GET_SIZE(upper);
    return 0;
}

static PyObject *match(PyObject *object, PyObject *const *arguments, Py_ssize_t given)
{
    enum { ROWS, FIRST, BUILDER, REGION_ID, START_TS, RESOLVED_TS, IS_INITIALISED, BOUNDS, ALL };
    if (given != ALL || !Py_IS_TYPE(arguments[BUILDER], &BlockBuilderType)) {
        PyErr_SetString(PyExc_TypeError, "match takes rows, the first one's index, a builder, the region's id, start "
                                         "ts and resolved ts, if it is initialised, and bounds");
        return NULL;
    }
    if (!Py_IS_TYPE(arguments[ROWS], &RegionRowsType))
        return Py_NewRef(arguments[FIRST]); /* a list of the decoder in Python */
    const RegionRows *rows = (RegionRows *)arguments[ROWS];
    Matching m = {.table = (PrewriteTable *)object, .builder = (BlockBuilder *)arguments[BUILDER]};
    Py_ssize_t first = PyNumber_AsSsize_t(arguments[FIRST], PyExc_IndexError);
    m.is_initialised = PyObject_IsTrue(arguments[IS_INITIALISED]);
    if (PyErr_Occurred() || number_from(arguments[REGION_ID], &m.region_id) < 0 ||
        number_from(arguments[START_TS], &m.start_ts) < 0 || number_from(arguments[RESOLVED_TS], &m.resolved_ts) < 0 ||
        bounds_from(arguments[BOUNDS], &m) < 0 || storage_of_builder(m.builder) == NULL)
        return NULL;
    if (first < 0 || first > Py_SIZE(rows)) {
        PyErr_SetString(PyExc_IndexError, "the event has no such row");
        return NULL;
    }
    m.row = rows->rows + first;
    m.end = rows->rows + Py_SIZE(rows);
    int done = match_rows(&m, m.end - m.row < MANY ? m.end : m.row + MANY);
    if (done == DONE && m.row < m.end) {
        Py_BEGIN_ALLOW_THREADS
        done = match_rows(&m, m.end);
        Py_END_ALLOW_THREADS
    }
    if (settle(m.table) < 0)
        done = NO_MEMORY;
    return done == NO_MEMORY ? PyErr_NoMemory() : PyLong_FromSsize_t(m.row - rows->rows);
}

/* --- Python -------------------------------------------------------------------------------------------- */

static PyObject *new_table(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(arguments) || (keywords != NULL && PyDict_GET_SIZE(keywords))) {
        PyErr_SetString(PyExc_TypeError, "a table takes no arguments");
        return NULL;
    }
    for (int i = 0; i < 2 && secrets[1] == 0; i++) {
        PyObject *text = PyUnicode_FromFormat("prewrites %d", i); /* whose hash is random */
        Py_hash_t hash = text == NULL ? -1 : PyObject_Hash(text);
        Py_XDECREF(text);
        if (hash == -1)
            return NULL;
        secrets[i] = (uint64_t)hash | 1;
    }
    return type->tp_alloc(type, 0); /* zeros */
}

static void free_table(PyObject *self)
{
    clear((PrewriteTable *)self);
    Py_TYPE(self)->tp_free(self);
}

static int content_from(PyObject *object, const uint8_t **content, uint32_t *size)
{
    if (!PyBytes_Check(object) || PyBytes_GET_SIZE(object) > UINT32_MAX) {
        PyErr_SetString(PyExc_TypeError, "keys and values are bytes of less than 4 GiB");
        return -1;
    }
    *content = (const uint8_t *)PyBytes_AS_STRING(object);
    *size = (uint32_t)PyBytes_GET_SIZE(object);
    return 0;
}

static PyObject *put(PyObject *object, PyObject *const *arguments, Py_ssize_t given)
{
    enum { START_TS, KEY, VALUE, OLD_VALUE, GENERATION, IS_FAKE, ALL };
    PrewriteTable *self = (PrewriteTable *)object;
    FeedRow row = {0};
    if (given != ALL) {
        PyErr_SetString(PyExc_TypeError, "put takes start ts, key, value, old value, generation, and if it is fake");
        return NULL;
    }
    int is_fake = PyObject_IsTrue(arguments[IS_FAKE]);
    if (is_fake < 0 || number_from(arguments[START_TS], &row.start_ts) < 0 ||
        number_from(arguments[GENERATION], &row.generation) < 0 ||
        content_from(arguments[KEY], &row.key, &row.key_bytes) < 0 ||
        content_from(arguments[VALUE], &row.value, &row.value_bytes) < 0 ||
        content_from(arguments[OLD_VALUE], &row.old_value, &row.old_bytes) < 0)
        return NULL;
    if (make_room(self, 1) < 0 || put_row(self, &row, is_fake, LEAST_CHUNK) < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* Return the slot of a prewrite, from a start ts and a key; NULL, with an exception or without. */
static uint32_t *slot_from(PrewriteTable *self, PyObject *const *arguments, Py_ssize_t given)
{
    uint64_t start_ts;
    const uint8_t *key;
    uint32_t key_bytes;
    if (given != 2) {
        PyErr_SetString(PyExc_TypeError, "a prewrite is found by start ts and key");
        return NULL;
    }
    if (number_from(arguments[0], &start_ts) < 0 || content_from(arguments[1], &key, &key_bytes) < 0)
        return NULL;
    Wanted its = wanted(start_ts, key, key_bytes);
    return find(self, &its);
}

static PyObject *prewrite_of(const PrewriteTable *self, const uint32_t *slot)
{
    const Entry *entry = &self->storage->entries[*slot - 1];
    const uint8_t *value = key_of(self->storage, entry) + entry->key_bytes;
    return Py_BuildValue("y#y#K", value, (Py_ssize_t)entry->value_bytes, value + entry->value_bytes,
                         (Py_ssize_t)entry->old_bytes, (unsigned long long)entry->origin);
}

static PyObject *get(PyObject *object, PyObject *const *arguments, Py_ssize_t given)
{
    PrewriteTable *self = (PrewriteTable *)object;
    const uint32_t *slot = slot_from(self, arguments, given);
    if (slot == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    return prewrite_of(self, slot);
}

static PyObject *take(PyObject *object, PyObject *const *arguments, Py_ssize_t given)
{
    PrewriteTable *self = (PrewriteTable *)object;
    uint32_t *slot = slot_from(self, arguments, given);
    if (slot == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *found = prewrite_of(self, slot);
    if (found != NULL) {
        drop(self, slot);
        if (settle(self) < 0) {
            Py_DECREF(found);
            return PyErr_NoMemory();
        }
    }
    return found;
}

static PyObject *sorted(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    const PrewriteTable *self = (PrewriteTable *)object;
    Storage *storage = new_storage(self->waiting), *made;
    const Storage *own = self->storage;
    if (storage == NULL)
        return PyErr_NoMemory();
    for (uint32_t i = 0; own != NULL && i < own->chunk_count; i++) {
        if (add_chunk(storage, own->chunks[i]) < 0) {
            drop_storage(storage);
            return PyErr_NoMemory();
        }
        if (own->chunks[i] != NULL)
            share_chunk(own->chunks[i]);
    }
    for (size_t i = 0; own != NULL && i < own->count; i++)
        if (own->entries[i].owner != TAKEN) {
            Entry *entry = &storage->entries[storage->count++];
            *entry = own->entries[i];
            entry->commit_ts = 0;
        }
    BlockPart all = {storage, storage->entries, storage->count, -1};
    Py_BEGIN_ALLOW_THREADS
    made = merge_sources(&all, 1);
    Py_END_ALLOW_THREADS
    drop_storage(storage);
    return made == NULL ? PyErr_NoMemory() : new_block(made);
}

static int block_from(PyObject *object, const Block **block)
{
    if (Py_IS_TYPE(object, &BlockType)) {
        *block = (Block *)object;
        return 0;
    }
    PyErr_SetString(PyExc_TypeError, "prewrites are read from a block and written to one");
    return -1;
}

static PyObject *load(PyObject *object, PyObject *given)
{
    PrewriteTable *self = (PrewriteTable *)object;
    const Block *block;
    if (block_from(given, &block) < 0)
        return NULL;
    if (block->count && make_room(self, block->count) < 0)
        return PyErr_NoMemory();
    for (size_t i = 0; i < block->count; i++) {
        const Entry *entry = &block->first[i];
        const uint8_t *key = key_of(block->storage, entry), *value = key + entry->key_bytes;
        FeedRow row = {
            .start_ts = entry->start_ts,
            .generation = entry->origin,
            .key = key,
            .value = value,
            .old_value = value + entry->value_bytes,
            .key_bytes = entry->key_bytes,
            .value_bytes = entry->value_bytes,
            .old_bytes = entry->old_bytes,
        };
        if (put_row(self, &row, 0, block->content < MOST_CHUNK ? block->content : MOST_CHUNK) < 0)
            return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

static PyObject *remove_block(PyObject *object, PyObject *given)
{
    PrewriteTable *self = (PrewriteTable *)object;
    const Block *block;
    if (block_from(given, &block) < 0)
        return NULL;
    for (size_t i = 0; i < block->count; i++) {
        const Entry *entry = &block->first[i];
        Wanted its = wanted(entry->start_ts, key_of(block->storage, entry), entry->key_bytes);
        uint32_t *slot = find(self, &its);
        if (slot != NULL)
            drop(self, slot);
    }
    return settle(self) < 0 ? PyErr_NoMemory() : Py_NewRef(Py_None);
}

static Py_ssize_t length(PyObject *self)
{
    return (Py_ssize_t)((PrewriteTable *)self)->waiting;
}

static PyObject *get_bytes(PyObject *self, void *Py_UNUSED(nothing))
{
    return PyLong_FromSize_t(table_bytes((PrewriteTable *)self));
}

static PyMethodDef methods[] = {
    {"match", (PyCFunction)(void (*)(void))match, METH_FASTCALL, "Match rows until one that isn't regular."},
    {"put", (PyCFunction)(void (*)(void))put, METH_FASTCALL, "Store a prewrite, unless another takes precedence."},
    {"get", (PyCFunction)(void (*)(void))get, METH_FASTCALL, "Return a prewrite."},
    {"take", (PyCFunction)(void (*)(void))take, METH_FASTCALL, "Remove and return a prewrite."},
    {"sorted", sorted, METH_NOARGS, "Return all prewrites as a block."},
    {"load", load, METH_O, "Store the prewrites of a block."},
    {"remove", remove_block, METH_O, "Remove the prewrites of a block."},
    {NULL},
};

static PyGetSetDef attributes[] = {
    {"bytes", get_bytes, NULL, "Bytes of memory that the prewrites take.", NULL},
    {NULL},
};

static PySequenceMethods sequence = {.sq_length = length};

PyTypeObject PrewriteTableType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tidemill.codec.native._native.PrewriteTable",
    .tp_basicsize = sizeof(PrewriteTable),
    .tp_new = new_table,
    .tp_dealloc = free_table,
    .tp_as_sequence = &sequence,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Prewrites of a region by start ts and key.",
    .tp_methods = methods,
    .tp_getset = attributes,
};
