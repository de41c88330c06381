/* CRC-32, sixty-four bytes at once where the processor can, otherwise eight. */
#include "crc32.h"

#include "bytes.h"

static uint32_t TABLES[8][256];

static int can_fold(void);
static int folds;

void load_crc32(void)
{
    folds = can_fold();
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

static uint32_t by_tables(uint32_t crc, const uint8_t *at, size_t size)
{
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t mixed = little_endian(at, 8) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= TABLES[7 - i][mixed >> 8 * i & 255];
    }
    while (size--)
        crc = crc >> 8 ^ TABLES[0][(crc ^ *at++) & 255];
    return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* Folding by multiplication without carry, as in Intel's "Fast CRC Computation for Generic Polynomials Using
   PCLMULQDQ Instruction" (2009), where the constants are from: powers of x modulo the polynomial, reflected. */
#define FOLDS __attribute__((target("pclmul,sse4.1"), always_inline)) static inline

enum { LEAST_FOLDED = 64 };

FOLDS __m128i load(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

/* Return `folded` moved on by as many bits as the two powers stand for, and added to `next`. */
FOLDS __m128i fold(__m128i folded, __m128i powers, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(folded, powers, 0x00);
    __m128i high = _mm_clmulepi64_si128(folded, powers, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* The same as `by_tables` for a size of at least 64 that 16 divides. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t by_folding(uint32_t crc, const uint8_t *at,
                                                                     size_t size)
{
    const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const __m128i by_64 = _mm_set_epi64x(0, 0x163cd6124);
    const __m128i polynomial = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    const __m128i low_halves = _mm_setr_epi32(-1, 0, -1, 0);
    __m128i lanes[4];
    for (int i = 0; i < 4; i++)
        lanes[i] = load(at + 16 * i);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128((int)crc));
    for (at += 64, size -= 64; size >= 64; at += 64, size -= 64)
        for (int i = 0; i < 4; i++)
            lanes[i] = fold(lanes[i], by_512, load(at + 16 * i));
    __m128i folded = lanes[0];
    for (int i = 1; i < 4; i++)
        folded = fold(folded, by_128, lanes[i]);
    for (; size >= 16; at += 16, size -= 16)
        folded = fold(folded, by_128, load(at));
    /* From 128 bits to 64, then to 32 by Barrett's reduction. */
    folded = _mm_xor_si128(_mm_srli_si128(folded, 8), _mm_clmulepi64_si128(folded, by_128, 0x10));
    __m128i rest = _mm_srli_si128(folded, 4);
    folded = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(folded, low_halves), by_64, 0x00), rest);
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(folded, low_halves), polynomial, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_halves), polynomial, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(folded, quotient), 1);
}

static int can_fold(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}
#else
enum { LEAST_FOLDED = 64 };

static uint32_t by_folding(uint32_t crc, const uint8_t *at, size_t size)
{
    return by_tables(crc, at, size);
}

static int can_fold(void)
{
    return 0;
}
#endif

uint32_t crc32_of(uint32_t checksum, const uint8_t *at, size_t size)
{
    uint32_t crc = ~checksum;
    if (folds && size >= LEAST_FOLDED) {
        size_t folded = size & ~(size_t)15;
        crc = by_folding(crc, at, folded);
        at += folded;
        size -= folded;
    }
    return ~by_tables(crc, at, size);
}
