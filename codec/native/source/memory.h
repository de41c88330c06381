/* Memory of Arrow arrays. Any thread may call, without the GIL. */
#ifndef TIDEMILL_MEMORY_H
#define TIDEMILL_MEMORY_H

#include <stddef.h>

/* Return memory of at least that size; NULL if there is none. */
void *take_memory(size_t size);

/* Return the size of a block, which may be larger than what was asked for. */
size_t memory_room(const void *block);

/* Return a block of at least that size with the first `used` bytes of `block`, which is given back, if there is
 * one; NULL without memory, then `block` is still there. */
void *grow_memory(void *block, size_t used, size_t size);

/* Give a block back, which may be NULL. */
void give_memory(void *block);

#endif
