/* CRC-32, eight bytes at once. */
#include "crc32.h"

#include "bytes.h"

static uint32_t TABLES[8][256];

void load_crc32(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
        TABLES[0][byte] = crc;
    }
    for (int table = 1; table < 8; table++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = TABLES[table - 1][byte];
            TABLES[table][byte] = crc >> 8 ^ TABLES[0][crc & 255];
        }
}

uint32_t crc32_of(uint32_t checksum, const uint8_t *at, size_t size)
{
    uint32_t crc = ~checksum;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t mixed = little_endian(at, 8) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= TABLES[7 - i][mixed >> 8 * i & 255];
    }
    while (size--)
        crc = crc >> 8 ^ TABLES[0][(crc ^ *at++) & 255];
    return ~crc;
}
