/* The commit order: by commit ts, start ts, op (DELETE first), key, keyspace. */
#include "block.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    DIGIT = 11, /* bits of a digit that is sorted by at once */
    FEW = 64,   /* fewer items than this are sorted by comparing */
    SMALL_CHUNK = 1 << 12
};

typedef struct {
    uint64_t commit_ts;
    const Entry *entry;
    const BlockPart *source;
} Item;

static uint32_t owner_of(const Item *item)
{
    uint32_t owner = item->entry->owner;
    return item->source->keyspace < 0 ? owner : (uint32_t)item->source->keyspace << 1 | (owner & 1);
}

static int compare_keys(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
    int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* Compare entries of the same commit ts, without their keyspaces. */
static int compare_rest(const Storage *a_storage, const Entry *a, const Storage *b_storage, const Entry *b)
{
    if (a->start_ts != b->start_ts)
        return a->start_ts < b->start_ts ? -1 : 1;
    int a_op = a->owner & 1, b_op = b->owner & 1;
    if (a_op != b_op)
        return a_op - b_op;
    return compare_keys(key_of(a_storage, a), a->key_bytes, key_of(b_storage, b), b->key_bytes);
}

/* Compare items; 0 if they are the same change, come twice. */
static int compare(const Item *a, const Item *b)
{
    if (a->commit_ts != b->commit_ts)
        return a->commit_ts < b->commit_ts ? -1 : 1;
    int order = compare_rest(a->source->storage, a->entry, b->source->storage, b->entry);
    if (order)
        return order;
    uint32_t a_owner = owner_of(a), b_owner = owner_of(b);
    return (a_owner > b_owner) - (a_owner < b_owner);
}

static int compare_totally(const void *left, const void *right)
{
    const Item *a = left, *b = right;
    int order = compare(a, b);
    if (order)
        return order;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    return (a->entry > b->entry) - (a->entry < b->entry);
}

int is_in_order(const Storage *storage)
{
    for (size_t i = 1; i < storage->count; i++) {
        const Entry *a = &storage->entries[i - 1], *b = a + 1;
        if (a->commit_ts < b->commit_ts)
            continue;
        int order = a->commit_ts > b->commit_ts ? 1 : compare_rest(storage, a, storage, b);
        if (order > 0 || (order == 0 && a->owner >= b->owner))
            return 0;
    }
    return 1;
}

size_t find_bound(const Storage *storage, const Entry *first, size_t count, const Bound *bound)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const Entry *entry = first + middle;
        int is_below = entry->commit_ts < bound->commit_ts;
        if (entry->commit_ts == bound->commit_ts) {
            int op = entry->owner & 1;
            if (entry->start_ts != bound->start_ts)
                is_below = entry->start_ts < bound->start_ts;
            else if (op != bound->op)
                is_below = op < bound->op;
            else
                is_below = compare_keys(key_of(storage, entry), entry->key_bytes, bound->key, bound->key_bytes) < 0;
        }
        if (is_below)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- sorting ------------------------------------------------------------------------------------------- */

/* Sort by a digit of the commit ts, from one array into the other. */
static void sort_by_digit(const Item *from, Item *into, size_t count, int shift)
{
    size_t starts[1 << DIGIT] = {0}, next = 0;
    const uint64_t mask = (1 << DIGIT) - 1;
    for (size_t i = 0; i < count; i++)
        starts[from[i].commit_ts >> shift & mask]++;
    for (size_t digit = 0; digit <= mask; digit++) {
        size_t its = starts[digit];
        starts[digit] = next;
        next += its;
    }
    for (size_t i = 0; i < count; i++)
        into[starts[from[i].commit_ts >> shift & mask]++] = from[i];
}

/* Sort the items of one commit ts, unless they are in order, as mostly. */
static void sort_tied(Item *items, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (compare(&items[i - 1], &items[i]) > 0) {
            qsort(items, count, sizeof *items, compare_totally);
            return;
        }
}

/* Sort the items, some of which are in order; `spare` is as large. Return which of the two has the result. */
static Item *sort(Item *items, Item *spare, size_t count)
{
    uint64_t differing = 0;
    int ascends = 1, is_ordered = 1;
    for (size_t i = 1; i < count; i++) {
        differing |= items[i].commit_ts ^ items[0].commit_ts;
        if (items[i - 1].commit_ts >= items[i].commit_ts) {
            is_ordered = 0;
            ascends &= items[i - 1].commit_ts == items[i].commit_ts;
        }
    }
    if (is_ordered)
        return items;
    if (!ascends && count < FEW) {
        qsort(items, count, sizeof *items, compare_totally);
        return items;
    }
    for (int shift = 0; !ascends && shift < 64; shift += DIGIT)
        if (differing >> shift & ((1 << DIGIT) - 1)) {
            sort_by_digit(items, spare, count, shift);
            Item *sorted = spare;
            spare = items;
            items = sorted;
        }
    for (size_t first = 0, i = 1; i <= count; i++)
        if (i == count || items[i].commit_ts != items[first].commit_ts) {
            if (i - first > 1)
                sort_tied(items + first, i - first);
            first = i;
        }
    return items;
}

static size_t without_repeated(Item *items, size_t count)
{
    size_t kept = count != 0;
    for (size_t i = 1; i < count; i++)
        if (items[i].commit_ts != items[kept - 1].commit_ts || compare(&items[kept - 1], &items[i]))
            items[kept++] = items[i];
    return kept;
}

/* --- what is sorted, as entries ------------------------------------------------------------------------ */

/* The chunks that are used, each once, and for each source the numbers of its chunks among them. */
typedef struct {
    const Chunk **chunks;
    uint32_t count;
    uint32_t *slots; /* hash table of numbers + 1 */
    size_t slot_count;
    uint32_t **numbers; /* by source, then by chunk; number + 1, or 0 */
    size_t bytes;
} Used;

static size_t slot_of(const Used *used, const Chunk *chunk)
{
    size_t slot = ((uintptr_t)chunk >> 4) * 0x9E3779B97F4A7C15ull >> 20;
    for (slot &= used->slot_count - 1; used->slots[slot]; slot = (slot + 1) & (used->slot_count - 1))
        if (used->chunks[used->slots[slot] - 1] == chunk)
            break;
    return slot;
}

static void close_used(Used *used, size_t sources)
{
    for (size_t i = 0; used->numbers != NULL && i < sources; i++)
        free(used->numbers[i]);
    free(used->numbers);
    free(used->slots);
    free(used->chunks);
}

static int open_used(Used *used, const BlockPart *sources, size_t count)
{
    size_t chunks = 0;
    used->numbers = calloc(count + 1, sizeof *used->numbers);
    for (size_t i = 0; used->numbers != NULL && i < count; i++) {
        chunks += sources[i].storage->chunk_count;
        used->numbers[i] = calloc(sources[i].storage->chunk_count + 1, sizeof **used->numbers);
        if (used->numbers[i] == NULL)
            return -1;
    }
    for (used->slot_count = 16; used->slot_count < 2 * chunks; used->slot_count *= 2)
        ;
    used->slots = calloc(used->slot_count, sizeof *used->slots);
    used->chunks = malloc((chunks + 1) * sizeof *used->chunks);
    return used->numbers == NULL || used->slots == NULL || used->chunks == NULL || chunks > UINT32_MAX ? -1 : 0;
}

static uint32_t use_chunk(Used *used, uint32_t *number, const Chunk *chunk)
{
    if (*number == 0) {
        size_t slot = slot_of(used, chunk);
        if (used->slots[slot] == 0) {
            used->chunks[used->count++] = chunk;
            used->slots[slot] = used->count;
            used->bytes += chunk->room;
        }
        *number = used->slots[slot];
    }
    return *number - 1;
}

/* Copy the contents, where few of the chunks' bytes or only small chunks are used. */
static Storage *copied(const Item *items, size_t count)
{
    Storage *storage = new_storage(count);
    for (size_t i = 0; storage != NULL && i < count; i++) {
        Entry entry = *items[i].entry;
        entry.owner = owner_of(&items[i]);
        const uint8_t *key = key_of(items[i].source->storage, items[i].entry);
        const uint8_t *value = key + entry.key_bytes;
        if (put_entry(storage, entry, key, value, value + entry.value_bytes) < 0) {
            drop_storage(storage); /* all its chunks are its own: no object is freed */
            storage = NULL;
        }
    }
    if (storage != NULL)
        trim_storage(storage);
    return storage;
}

static Storage *shared(const Item *items, size_t count, const BlockPart *sources, Used *used)
{
    Storage *storage = new_storage(count);
    if (storage == NULL)
        return NULL;
    storage->chunks = PyMem_RawMalloc((used->count + 1) * sizeof *storage->chunks);
    if (storage->chunks == NULL) {
        drop_storage(storage);
        return NULL;
    }
    storage->chunk_room = used->count + 1;
    for (size_t i = 0; i < count; i++) {
        const Item *item = &items[i];
        Entry *entry = &storage->entries[i];
        *entry = *item->entry;
        entry->owner = owner_of(item);
        entry->chunk = used->numbers[item->source - sources][entry->chunk] - 1;
    }
    storage->count = count;
    for (uint32_t i = 0; i < used->count; i++)
        storage->chunks[i] = share_chunk((Chunk *)used->chunks[i]);
    storage->chunk_count = used->count;
    return storage;
}

static Storage *storage_of_items(const Item *items, size_t count, const BlockPart *sources, size_t source_count)
{
    Used used = {0};
    Storage *storage = NULL;
    size_t content = 0;
    if (open_used(&used, sources, source_count) == 0) {
        for (size_t i = 0; i < count; i++) {
            const Item *item = &items[i];
            const Storage *its = item->source->storage;
            uint32_t chunk = item->entry->chunk;
            use_chunk(&used, &used.numbers[item->source - sources][chunk], its->chunks[chunk]);
            content += content_bytes(item->entry);
        }
        int is_waste = used.bytes > 2 * content + SPARE || content < (size_t)used.count * SMALL_CHUNK;
        storage = is_waste ? copied(items, count) : shared(items, count, sources, &used);
    }
    close_used(&used, source_count);
    return storage;
}

int order_storage(Storage *storage)
{
    size_t count = storage->count;
    BlockPart all = {storage, storage->entries, count, -1};
    Item few[2 * FEW], *items = count <= FEW ? few : take_memory(2 * count * sizeof *items);
    Entry *entries = items == NULL ? NULL : PyMem_RawMalloc((count + 1) * sizeof *entries);
    if (entries != NULL) {
        for (size_t i = 0; i < count; i++)
            items[i] = (Item){storage->entries[i].commit_ts, &storage->entries[i], &all};
        Item *sorted = sort(items, items + count, count);
        size_t kept = without_repeated(sorted, count);
        for (size_t i = 0; i < kept; i++)
            entries[i] = *sorted[i].entry;
        PyMem_RawFree(storage->entries);
        storage->entries = entries;
        storage->count = kept;
        storage->room = count + 1;
    }
    if (items != few)
        give_memory(items);
    return entries == NULL ? -1 : 0;
}

Storage *merge_sources(const BlockPart *sources, size_t count)
{
    size_t total = 0, next = 0;
    for (size_t i = 0; i < count; i++)
        total += sources[i].count;
    Item *items = take_memory(total * sizeof *items + 1), *spare = take_memory(total * sizeof *spare + 1);
    Storage *storage = NULL;
    if (items != NULL && spare != NULL) {
        for (size_t i = 0; i < count; i++)
            for (size_t n = 0; n < sources[i].count; n++) {
                const Entry *entry = sources[i].first + n;
                items[next++] = (Item){entry->commit_ts, entry, &sources[i]};
            }
        Item *sorted = sort(items, spare, total);
        storage = storage_of_items(sorted, without_repeated(sorted, total), sources, count);
    }
    give_memory(items);
    give_memory(spare);
    return storage;
}
