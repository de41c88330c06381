/* Decimal digits of numbers. */
#ifndef TIDEMILL_DIGITS_H
#define TIDEMILL_DIGITS_H

#include <stdint.h>
#include <string.h>

/* Write the two digits of a number below 100, and return their end. */
static inline uint8_t *put_pair(uint8_t *into, unsigned number)
{
    static const char PAIRS[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    memcpy(into, PAIRS + 2 * number, 2);
    return into + 2;
}

/* Write a number before `end`, with zeros up to `least` digits, and return where it begins. */
static inline uint8_t *digits_before(uint8_t *end, uint64_t number, int least)
{
    for (; number >= 100; number /= 100, least -= 2) {
        end -= 2;
        put_pair(end, (unsigned)(number % 100));
    }
    for (; number || least > 0; number /= 10, least--)
        *--end = (uint8_t)('0' + number % 10);
    return end;
}

static inline uint8_t *put_bytes(uint8_t *into, const void *bytes, size_t size)
{
    memcpy(into, bytes, size);
    return into + size;
}

/* Write a number without zeros before it, and return its end. */
static inline uint8_t *put_number(uint8_t *into, uint64_t number)
{
    uint8_t digits[24], *end = digits + sizeof digits, *start = digits_before(end, number, 1);
    return put_bytes(into, start, (size_t)(end - start));
}

#endif
