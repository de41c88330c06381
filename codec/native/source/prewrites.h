/* Prewrites of a region of TiKV that wait for their commits. */
#ifndef TIDEMILL_PREWRITES_H
#define TIDEMILL_PREWRITES_H

#include "block.h"

/* A hash table by start ts and key. Its entries are a storage's, of which `commit_ts` is the hash, `origin` the
   generation, and `owner` TAKEN or not. Used by one thread at a time. */
typedef struct {
    PyObject_HEAD
    Storage *storage;   /* NULL if empty */
    uint32_t *slots;    /* numbers of entries + 1, or 0 */
    size_t slot_count;  /* a power of 2 */
    size_t waiting;     /* prewrites */
    size_t content;     /* bytes of their keys and values */
    size_t chunk_bytes; /* of all chunks */
} PrewriteTable;

extern PyTypeObject PrewriteTableType;

#endif
