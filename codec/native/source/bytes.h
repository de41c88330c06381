/* Numbers in the order of bytes of a format. */
#ifndef TIDEMILL_BYTES_H
#define TIDEMILL_BYTES_H

#include <stdint.h>

static inline uint64_t little_endian(const uint8_t *at, int size)
{
    uint64_t number = 0;
    for (int i = size; i--;)
        number = number << 8 | at[i];
    return number;
}

static inline uint64_t big_endian(const uint8_t *at, int size)
{
    uint64_t number = 0;
    for (int i = 0; i < size; i++)
        number = number << 8 | at[i];
    return number;
}

static inline int64_t sign_extended(uint64_t number, int size)
{
    int unused = 64 - 8 * size;
    return (int64_t)(number << unused) >> unused;
}

#endif
