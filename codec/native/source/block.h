/* Blocks: changes in commit order, packed. See docs/concepts/blocks.md for their form and for who owns one when. */
#ifndef TIDEMILL_BLOCK_H
#define TIDEMILL_BLOCK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "blocks are read from disk as they are, which is little-endian"
#endif

/* One change, in memory as on disk. */
typedef struct {
    uint64_t commit_ts, start_ts, origin;
    uint32_t chunk, at; /* where its key begins; its value and its old value follow */
    uint32_t key_bytes, value_bytes, old_bytes;
    uint32_t owner; /* keyspace << 1 | op */
} Entry;

enum {
    MAX_KEYSPACE = INT32_MAX,
    SPARE = 1 << 16 /* bytes that may be held in vain, besides as many as are used */
};

/* Keys and values, of any number of changes. Whoever has a reference may read, without the GIL too. */
typedef struct {
    Py_ssize_t references; /* changed atomically */
    PyObject *object;      /* has the data, if it isn't `own` */
    const uint8_t *data;
    size_t size, room;
    size_t waiting; /* prewrites in it that wait: for the table that made it */
    uint8_t own[];
} Chunk;

/* Entries, and the chunks that they name. */
typedef struct {
    Py_ssize_t references; /* changed with the GIL held */
    PyObject *object;      /* has the entries, if they aren't allocated */
    Entry *entries;
    size_t count, room;
    Chunk **chunks;
    uint32_t chunk_count, chunk_room;
} Storage;

/* Changes that are to be put in order: a part of a storage. */
typedef struct {
    const Storage *storage;
    const Entry *first;
    size_t count;
    int64_t keyspace; /* in place of theirs; -1 for none */
} BlockPart;

typedef struct {
    uint64_t commit_ts, start_ts;
    int op;
    const uint8_t *key;
    size_t key_bytes;
} Bound;

static inline size_t content_bytes(const Entry *entry)
{
    return (size_t)entry->key_bytes + entry->value_bytes + entry->old_bytes;
}

static inline const uint8_t *key_of(const Storage *storage, const Entry *entry)
{
    return storage->chunks[entry->chunk]->data + entry->at;
}

/* --- storage: with the GIL held, but for `put_entry` and `add_entry`, which must be the only users --- */

/* Return one with room for that many entries; NULL without memory, as the rest here. */
Storage *new_storage(size_t room);
void drop_storage(Storage *storage);
Chunk *new_chunk(size_t room);

/* Drop a reference, or nothing for NULL. Without the GIL too, unless the chunk has an object. */
void drop_chunk(Chunk *chunk);

static inline Chunk *share_chunk(Chunk *chunk)
{
    __atomic_add_fetch(&chunk->references, 1, __ATOMIC_RELAXED);
    return chunk;
}

/* Return the number of a chunk, which is added with its reference; -1 without memory: then it stays the
   caller's. */
int64_t add_chunk(Storage *storage, Chunk *chunk);

/* Append an entry whose content is copied to the last chunk, or to a new one. 0, or -1 without memory. */
int put_entry(Storage *storage, Entry entry, const uint8_t *key, const uint8_t *value,
              const uint8_t *old_value);

/* Append an entry as it is. */
int add_entry(Storage *storage, const Entry *entry);

/* Give back the memory that nothing was put in. */
void trim_storage(Storage *storage);

/* Return the bytes of memory that are there as long as the storage is. */
size_t held_bytes(const Storage *storage);

/* --- order: without the GIL ---------------------------------------------------------------------------- */

/* True if the entries ascend and no two are the same. */
int is_in_order(const Storage *storage);

/* Put the entries, which must be allocated and nobody else's, into order, each once. 0, or -1 without memory. */
int order_storage(Storage *storage);

/* Return the index of the first of `count` entries at or above the bound. */
size_t find_bound(const Storage *storage, const Entry *first, size_t count, const Bound *bound);

/* Return the changes of all sources in order, each once; of equal ones that of the first source. NULL without
   memory. */
Storage *merge_sources(const BlockPart *sources, size_t count);

/* --- form on disk -------------------------------------------------------------------------------------- */

PyObject *block_to_bytes(const Storage *storage, const Entry *first, size_t count);

/* Return the storage of a block on disk, in `object`'s bytes; NULL with a ValueError if they are damaged. */
Storage *storage_of_bytes(PyObject *object);

/* --- Python -------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    Storage *storage;
    const Entry *first;
    size_t count;
    size_t content; /* bytes of its keys and values */
} Block;

extern PyTypeObject BlockType, BlockBuilderType;

typedef struct {
    PyObject_HEAD
    Storage *storage;
    size_t content;
} BlockBuilder;

/* Return a block of a storage's entries, which takes over the reference. NULL with an exception. */
PyObject *new_block(Storage *storage);

/* Return what a builder's changes are put into; NULL with an exception. */
Storage *storage_of_builder(BlockBuilder *builder);

PyObject *merge_blocks(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *block_from_bytes(PyObject *module, PyObject *data);
/* Set the type of a single change (KvChange). */
PyObject *use_change(PyObject *module, PyObject *type);

#endif
