/* Blocks on disk: a head, the entries as in memory, and the contents one after the other. */
#include "block.h"
#include "crc32.h"

#include <string.h>

typedef struct {
    char magic[4];
    uint32_t crc; /* of all that follows */
    uint64_t count;
    uint64_t content; /* bytes */
} Head;

static const char MAGIC[4] = "TMB1";
enum { BEFORE_CRC = 8 };

static uint32_t crc_of(const uint8_t *data, size_t size)
{
    return crc32_of(0, data + BEFORE_CRC, size - BEFORE_CRC);
}

static void fill(uint8_t *into, size_t size, size_t content, const Storage *storage, const Entry *first,
                 size_t count)
{
    Head head = {.count = count, .content = content};
    memcpy(head.magic, MAGIC, sizeof MAGIC);
    uint8_t *entries = into + sizeof head, *at = entries + count * sizeof *first, *start = at;
    for (size_t i = 0; i < count; i++) {
        Entry entry = first[i];
        memcpy(at, key_of(storage, &first[i]), content_bytes(&entry));
        entry.chunk = 0;
        entry.at = (uint32_t)(at - start);
        memcpy(entries + i * sizeof entry, &entry, sizeof entry);
        at += content_bytes(&entry);
    }
    memcpy(into, &head, sizeof head);
    head.crc = crc_of(into, size);
    memcpy(into, &head, sizeof head);
}

PyObject *block_to_bytes(const Storage *storage, const Entry *first, size_t count)
{
    size_t content = 0;
    for (size_t i = 0; i < count; i++) {
        if (content > UINT32_MAX)
            break;
        content += content_bytes(&first[i]);
    }
    if (count > UINT32_MAX || (count && content - content_bytes(&first[count - 1]) > UINT32_MAX)) {
        PyErr_SetString(PyExc_ValueError, "a block of more than 4 GiB can't be written: cut it");
        return NULL;
    }
    size_t size = sizeof(Head) + count * sizeof *first + content;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes != NULL) {
        uint8_t *into = (uint8_t *)PyBytes_AS_STRING(bytes);
        Py_BEGIN_ALLOW_THREADS
        fill(into, size, content, storage, first, count);
        Py_END_ALLOW_THREADS
    }
    return bytes;
}

/* Return what is wrong with the bytes, or NULL. */
static const char *fault(const uint8_t *data, size_t size)
{
    Head head;
    if (size < sizeof head)
        return "it is too short";
    memcpy(&head, data, sizeof head);
    if (memcmp(head.magic, MAGIC, sizeof MAGIC))
        return "it is no block of this version";
    if (head.crc != crc_of(data, size))
        return "the checksum does not match";
    size_t room = size - sizeof head;
    if (head.count > room / sizeof(Entry) || head.content != room - head.count * sizeof(Entry))
        return "its sizes don't fit";
    for (size_t i = 0; i < head.count; i++) {
        Entry entry;
        memcpy(&entry, data + sizeof head + i * sizeof entry, sizeof entry);
        if (entry.chunk || entry.at > head.content || content_bytes(&entry) > head.content - entry.at)
            return "a change lies outside of it";
    }
    return NULL;
}

static Storage *open_storage(PyObject *object)
{
    Storage *storage = new_storage(0);
    Chunk *chunk = storage == NULL ? NULL : new_chunk(0);
    if (chunk == NULL || add_chunk(storage, chunk) < 0) {
        if (chunk != NULL)
            drop_chunk(chunk);
        drop_storage(storage);
        PyErr_NoMemory();
        return NULL;
    }
    uint8_t *data = (uint8_t *)PyBytes_AS_STRING(object);
    Head head;
    memcpy(&head, data, sizeof head);
    storage->object = Py_NewRef(object);
    storage->entries = (Entry *)(data + sizeof head);
    storage->count = storage->room = head.count;
    chunk->object = Py_NewRef(object);
    chunk->data = data + sizeof head + head.count * sizeof(Entry);
    chunk->size = head.content;
    chunk->room = (size_t)PyBytes_GET_SIZE(object);
    return storage;
}

Storage *storage_of_bytes(PyObject *object)
{
    const uint8_t *data = (const uint8_t *)PyBytes_AS_STRING(object);
    size_t size = (size_t)PyBytes_GET_SIZE(object);
    const char *wrong;
    Py_BEGIN_ALLOW_THREADS
    wrong = fault(data, size);
    Py_END_ALLOW_THREADS
    if (wrong != NULL) {
        PyErr_Format(PyExc_ValueError, "a block can't be read: %s", wrong);
        return NULL;
    }
    Storage *storage = (uintptr_t)data % _Alignof(Entry) == 0 ? open_storage(object) : NULL;
    if (storage == NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "a block's bytes aren't aligned");
        return NULL;
    }
    if (storage != NULL && !is_in_order(storage)) {
        drop_storage(storage);
        PyErr_SetString(PyExc_ValueError, "a block can't be read: its changes aren't in order");
        return NULL;
    }
    return storage;
}
