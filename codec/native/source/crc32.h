/* CRC-32 as in zlib. */
#ifndef TIDEMILL_CRC32_H
#define TIDEMILL_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Make the tables: once, before anything else here is called. */
void load_crc32(void);

/* Return the CRC of what `crc` is of, 0 for nothing, followed by these bytes. */
uint32_t crc32_of(uint32_t crc, const uint8_t *at, size_t size);

#endif
