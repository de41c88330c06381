/* The digits are found as in Raffaello Giulietti, "The Schubfach way to render doubles", 2020, whose names
 * for numbers are kept. */
#include "double_text.h"
#include "digits.h"

typedef unsigned __int128 uint128;

enum { SIGNIFICAND_BITS = 52, EXPONENT_BIAS = 1075, MOST_PLACES = 16, LEAST_PLACES = -5 };

/* A number without its sign: digits * 10 ** exponent. */
typedef struct {
    uint64_t digits;
    int exponent;
} Decimal;

/* Return the first 64 bits of 192; the lowest is set if any other is. */
static uint64_t round_to_odd(uint128 power, uint64_t number)
{
    uint128 low = (uint128)(uint64_t)power * number;
    uint128 high = (uint128)(uint64_t)(power >> 64) * number + (low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* Return the shortest decimal of those that read back as c * 2 ** q, and of these the closest. */
static Decimal shortest(uint64_t c, int q, int is_closer_below, const uint8_t *powers)
{
    uint128 power;
    /* k = floor(log10(2 ** q)), or of three quarters of it; h = q + floor(log2(10 ** -k)) + 1 */
    int k = (q * 1262611 - (is_closer_below ? 524031 : 0)) >> 22, h = q + ((-k * 1741647) >> 19) + 1;
    memcpy(&power, powers + (-k - LEAST_POWER) * POWER_BYTES, POWER_BYTES);
    uint64_t is_odd = c & 1;
    uint64_t lower = round_to_odd(power, (4 * c - 2 + (uint64_t)is_closer_below) << h) + is_odd;
    uint64_t middle = round_to_odd(power, 4 * c << h);
    uint64_t upper = round_to_odd(power, (4 * c + 2) << h) - is_odd;
    uint64_t s = middle / 4, tens = s / 10;
    int is_below = lower <= 40 * tens, is_above = 40 * tens + 40 <= upper;
    if (s >= 10 && is_below != is_above)
        return (Decimal){tens + (uint64_t)is_above, k + 1};
    is_below = lower <= 4 * s, is_above = 4 * s + 4 <= upper;
    if (is_below == is_above)
        is_above = middle > 4 * s + 2 || (middle == 4 * s + 2 && s & 1);
    return (Decimal){s + (uint64_t)is_above, k};
}

static Decimal decimal_of(uint64_t bits, const uint8_t *powers)
{
    uint64_t significand = bits & (((uint64_t)1 << SIGNIFICAND_BITS) - 1);
    int exponent = (int)(bits >> SIGNIFICAND_BITS & 0x7FF), q = (exponent ? exponent : 1) - EXPONENT_BIAS;
    uint64_t c = exponent ? significand | (uint64_t)1 << SIGNIFICAND_BITS : significand;
    int is_integer = q <= 0 && q >= -SIGNIFICAND_BITS && !(c & (((uint64_t)1 << -q) - 1));
    Decimal found = {is_integer ? c >> -q : 0, 0};
    if (c && !is_integer)
        found = shortest(c, q, significand == 0 && exponent > 1, powers);
    while (found.digits && found.digits % 10 == 0) {
        found.digits /= 10;
        found.exponent++;
    }
    return found;
}

static uint8_t *put_zeros(uint8_t *into, int count)
{
    while (count-- > 0)
        *into++ = '0';
    return into;
}

uint8_t *put_double(uint8_t *into, double number, const uint8_t *powers)
{
    uint64_t bits;
    uint8_t room[24], *end = room + sizeof room;
    memcpy(&bits, &number, sizeof bits);
    if (bits >> 63)
        *into++ = '-';
    Decimal decimal = decimal_of(bits & ~((uint64_t)1 << 63), powers);
    uint8_t *digits = digits_before(end, decimal.digits, 1);
    int count = (int)(end - digits), places = count + decimal.exponent; /* before the point */
    if (places > LEAST_PLACES && places <= 0)
        return put_bytes(put_zeros(put_bytes(into, "0.", 2), -places), digits, (size_t)count);
    if (places > 0 && places <= MOST_PLACES && decimal.exponent >= 0)
        return put_bytes(put_zeros(put_bytes(into, digits, (size_t)count), decimal.exponent), ".0", 2);
    int whole = places > 0 && places <= MOST_PLACES ? places : 1;
    into = put_bytes(into, digits, (size_t)whole);
    if (count > whole) {
        *into++ = '.';
        into = put_bytes(into, digits + whole, (size_t)(count - whole));
    }
    if (whole == places)
        return into;
    *into++ = 'e';
    if (places < 1)
        *into++ = '-';
    return put_number(into, (uint64_t)(places < 1 ? 1 - places : places - 1));
}
