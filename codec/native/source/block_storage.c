/* Chunks and storages of blocks. */
#include "block.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 1 << 12, LARGEST_CHUNK = 1 << 18, FIRST_ENTRIES = 16 };

Chunk *new_chunk(size_t room)
{
    Chunk *chunk = malloc(sizeof *chunk + room);
    if (chunk != NULL) {
        *chunk = (Chunk){.references = 1, .room = room};
        chunk->data = chunk->own;
    }
    return chunk;
}

void drop_chunk(Chunk *chunk)
{
    if (--chunk->references == 0) {
        Py_XDECREF(chunk->object);
        free(chunk);
    }
}

Storage *new_storage(size_t room)
{
    Storage *storage = calloc(1, sizeof *storage);
    if (storage == NULL)
        return NULL;
    storage->references = 1;
    if (room) {
        storage->entries = malloc(room * sizeof *storage->entries);
        if (storage->entries == NULL) {
            free(storage);
            return NULL;
        }
        storage->room = room;
    }
    return storage;
}

void drop_storage(Storage *storage)
{
    if (storage == NULL || --storage->references)
        return;
    for (uint32_t i = 0; i < storage->chunk_count; i++)
        drop_chunk(storage->chunks[i]);
    free(storage->chunks);
    if (storage->object == NULL)
        free(storage->entries);
    Py_XDECREF(storage->object);
    free(storage);
}

int64_t add_chunk(Storage *storage, Chunk *chunk)
{
    if (storage->chunk_count == storage->chunk_room) {
        uint32_t room = storage->chunk_room ? 2 * storage->chunk_room : 4;
        Chunk **larger = room > storage->chunk_room ? realloc(storage->chunks, room * sizeof *larger) : NULL;
        if (larger == NULL)
            return -1;
        storage->chunks = larger;
        storage->chunk_room = room;
    }
    storage->chunks[storage->chunk_count] = chunk;
    return storage->chunk_count++;
}

int add_entry(Storage *storage, const Entry *entry)
{
    if (storage->count == storage->room) {
        size_t room = storage->room ? 2 * storage->room : FIRST_ENTRIES;
        Entry *larger = realloc(storage->entries, room * sizeof *larger);
        if (larger == NULL)
            return -1;
        storage->entries = larger;
        storage->room = room;
    }
    storage->entries[storage->count++] = *entry;
    return 0;
}

/* Return the last chunk with that much room left, which is its own memory; NULL without memory. */
static Chunk *chunk_with_room(Storage *storage, size_t size)
{
    Chunk *last = storage->chunk_count ? storage->chunks[storage->chunk_count - 1] : NULL;
    int is_own = last != NULL && last->data == last->own && last->references == 1;
    if (is_own && last->room - last->size >= size)
        return last;
    size_t room = is_own ? 2 * last->room : FIRST_CHUNK;
    room = room > LARGEST_CHUNK ? LARGEST_CHUNK : room;
    Chunk *chunk = new_chunk(room > size ? room : size);
    if (chunk != NULL && add_chunk(storage, chunk) < 0) {
        free(chunk);
        return NULL;
    }
    return chunk;
}

int put_entry(Storage *storage, Entry entry, const uint8_t *key, const uint8_t *value,
              const uint8_t *old_value)
{
    Chunk *chunk = chunk_with_room(storage, content_bytes(&entry));
    if (chunk == NULL)
        return -1;
    entry.chunk = storage->chunk_count - 1;
    entry.at = (uint32_t)chunk->size;
    if (add_entry(storage, &entry) < 0)
        return -1;
    uint8_t *into = chunk->own + chunk->size;
    memcpy(into, key, entry.key_bytes);
    memcpy(into += entry.key_bytes, value, entry.value_bytes);
    memcpy(into += entry.value_bytes, old_value, entry.old_bytes);
    chunk->size += content_bytes(&entry);
    return 0;
}

void trim_storage(Storage *storage)
{
    Chunk *last = storage->chunk_count ? storage->chunks[storage->chunk_count - 1] : NULL;
    if (last != NULL && last->data == last->own && last->references == 1 && last->room > last->size) {
        Chunk *smaller = realloc(last, sizeof *last + last->size);
        if (smaller != NULL) {
            smaller->data = smaller->own;
            smaller->room = smaller->size;
            storage->chunks[storage->chunk_count - 1] = smaller;
        }
    }
    if (storage->object == NULL && storage->room > storage->count && storage->count) {
        Entry *smaller = realloc(storage->entries, storage->count * sizeof *smaller);
        if (smaller != NULL) {
            storage->entries = smaller;
            storage->room = storage->count;
        }
    }
}

size_t held_bytes(const Storage *storage)
{
    size_t held = storage->object == NULL ? storage->room * sizeof(Entry) : 0; /* else they are in a chunk */
    for (uint32_t i = 0; i < storage->chunk_count; i++)
        held += storage->chunks[i]->room;
    return held;
}
