/* Large blocks are kept and used again. The C library returns each one to the system when it is freed, so that
 * every batch takes a page fault for each 4 KiB: two fifths of the CPU time of reading columns. */
#include "memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALLEST = 16, /* blocks are kept from 2 ** 16 bytes on: smaller ones stay with the C library */
    CLASSES = 8,
    LARGEST = SMALLEST + CLASSES - 1,
    KEPT_BYTES = 32 << 20 /* at most, in the whole process */
};

typedef union Head {
    struct {
        size_t room;
        union Head *next; /* of a kept block */
    };
    max_align_t aligned;
} Head;

static Head *kept[CLASSES];
static size_t kept_bytes;
/* Held by the thread that uses these. No one waits for it: where it is held, also by a thread that a fork left
 * behind, the C library is asked. */
static atomic_flag held = ATOMIC_FLAG_INIT;

/* Return the number of the blocks' class; -1 for sizes that aren't kept. */
static int class_of(size_t size)
{
    if (size < (size_t)1 << SMALLEST || size > (size_t)1 << LARGEST)
        return -1;
    int class = 0;
    while ((size_t)1 << (SMALLEST + class) < size)
        class++;
    return class;
}

void *take_memory(size_t size)
{
    int class = class_of(size);
    Head *head = NULL;
    if (class >= 0) {
        size = (size_t)1 << (SMALLEST + class);
        if (!atomic_flag_test_and_set(&held)) {
            head = kept[class];
            if (head != NULL) {
                kept[class] = head->next;
                kept_bytes -= size;
            }
            atomic_flag_clear(&held);
        }
    }
    if (head == NULL && size <= SIZE_MAX - sizeof(Head))
        head = malloc(sizeof(Head) + size);
    if (head == NULL)
        return NULL;
    head->room = size;
    return head + 1;
}

size_t memory_room(const void *block)
{
    return ((const Head *)block - 1)->room;
}

void *grow_memory(void *block, size_t used, size_t size)
{
    void *larger = take_memory(size);
    if (larger != NULL && block != NULL) {
        memcpy(larger, block, used);
        give_memory(block);
    }
    return larger;
}

void give_memory(void *block)
{
    if (block == NULL)
        return;
    Head *head = (Head *)block - 1;
    int class = class_of(head->room);
    if (class >= 0 && !atomic_flag_test_and_set(&held)) {
        int is_kept = kept_bytes + head->room <= KEPT_BYTES;
        if (is_kept) {
            head->next = kept[class];
            kept[class] = head;
            kept_bytes += head->room;
        }
        atomic_flag_clear(&held);
        if (is_kept)
            return;
    }
    free(head);
}
