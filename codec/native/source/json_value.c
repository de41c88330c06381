/* Values of Arrow columns as JSON, without the quotes around them. */
#include "json_value.h"
#include "digits.h"
#include "double_text.h"
#include "time_text.h"

#include <math.h>

static const uint8_t LINE_END[] = {0xE2, 0x80, 0xA9}; /* U+2029; U+2028 is one less */

int is_json_form(const JsonForm *form)
{
    const int width = form->width, scale = form->scale;
    switch (form->output) {
    case INT:
    case UINT:
        return width == 1 || width == 2 || width == 4 || width == 8;
    case DOUBLE:
        return width == 4 || width == 8;
    case DECIMAL:
        return width == 16 && scale >= 0 && scale <= MAX_DIGITS;
    case DATE:
    case DATETIME:
    case DURATION:
        return is_time_form(form->output, width, scale);
    default:
        return (form->output == TEXT || form->output == BYTES) && width == 0;
    }
}

/* --- values of fixed width ---------------------------------------------------------------------------- */

static int64_t integer_at(const uint8_t *at, int width)
{
    int8_t byte;
    int16_t word;
    int32_t half;
    int64_t number;
    switch (width) {
    case 1:
        return memcpy(&byte, at, 1), byte;
    case 2:
        return memcpy(&word, at, 2), word;
    case 4:
        return memcpy(&half, at, 4), half;
    default:
        return memcpy(&number, at, 8), number;
    }
}

static uint64_t unsigned_at(const uint8_t *at, int width)
{
    int unused = 64 - 8 * width;
    return (uint64_t)integer_at(at, width) << unused >> unused;
}

static uint8_t *put_integer(uint8_t *into, int64_t number)
{
    if (number < 0)
        *into++ = '-';
    return put_number(into, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

static uint8_t *put_decimal(uint8_t *into, const uint8_t *at, int scale)
{
    static const uint64_t LOW = 10000000000000000000u; /* 19 digits */
    int128 number;
    uint8_t room[48], *end = room + sizeof room;
    memcpy(&number, at, sizeof number);
    unsigned __int128 rest = number < 0 ? -(unsigned __int128)number : (unsigned __int128)number;
    uint8_t *digits = rest < LOW ? digits_before(end, (uint64_t)rest, scale + 1)
                                 : digits_before(digits_before(end, (uint64_t)(rest % LOW), 19),
                                                 (uint64_t)(rest / LOW), scale + 1 - 19);
    if (number < 0)
        *into++ = '-';
    into = put_bytes(into, digits, (size_t)(end - digits - scale));
    if (scale)
        *into++ = '.';
    return put_bytes(into, end - scale, (size_t)scale);
}

static double double_at(const uint8_t *at, int width)
{
    float single;
    double number;
    if (width == sizeof single)
        return memcpy(&single, at, sizeof single), single;
    return memcpy(&number, at, sizeof number), number;
}

static uint8_t *put_real(uint8_t *into, double number, const uint8_t *powers)
{
    return isfinite(number) ? put_double(into, number, powers) : put_bytes(into, "null", 4);
}

uint8_t *put_fixed(uint8_t *into, const JsonForm *form, const uint8_t *at, const uint8_t *powers)
{
    switch (form->output) {
    case INT:
        return put_integer(into, integer_at(at, form->width));
    case UINT:
        return put_number(into, unsigned_at(at, form->width));
    case DOUBLE:
        return put_real(into, double_at(at, form->width), powers);
    case DECIMAL:
        return put_decimal(into, at, form->scale);
    default:
        return put_time(into, form->output, integer_at(at, form->width), form->scale);
    }
}

/* --- text and bytes ----------------------------------------------------------------------------------- */

/* True if one of eight bytes is the given one. */
static uint64_t has_byte(uint64_t bytes, uint8_t byte)
{
    const uint64_t ones = 0x0101010101010101u, differ = bytes ^ ones * byte;
    return (differ - ones) & ~differ & ones << 7;
}

/* True if none of eight bytes may need an escape. */
static int is_plain(uint64_t bytes, Escapes escapes)
{
    const uint64_t ones = 0x0101010101010101u, controls = (bytes - ones * ' ') & ~bytes & ones << 7;
    if (controls | has_byte(bytes, '"') | has_byte(bytes, '\\'))
        return 0;
    return escapes != HTML_ESCAPES || !(has_byte(bytes, '<') | has_byte(bytes, '>') | has_byte(bytes, '&') |
                                        has_byte(bytes, LINE_END[0]));
}

static uint8_t *put_code(uint8_t *into, uint8_t high, uint8_t low)
{
    static const char DIGITS[] = "0123456789abcdef";
    into = put_bytes(into, "\\u", 2);
    *into++ = (uint8_t)DIGITS[high >> 4];
    *into++ = (uint8_t)DIGITS[high & 15];
    *into++ = (uint8_t)DIGITS[low >> 4];
    *into++ = (uint8_t)DIGITS[low & 15];
    return into;
}

static uint8_t *put_character(uint8_t *into, uint8_t byte, Escapes escapes)
{
    static const char SHORT[] = "btn?fr"; /* from 8 on; 11 has none */
    if (byte == '"' || byte == '\\') {
        *into++ = '\\';
        *into++ = byte;
        return into;
    }
    if (byte >= ' ') {
        if (escapes == HTML_ESCAPES && (byte == '<' || byte == '>' || byte == '&'))
            return put_code(into, 0, byte);
        *into++ = byte;
        return into;
    }
    int is_long = escapes != SHORT_ESCAPES && (byte == '\b' || byte == '\f');
    if (byte < '\b' || byte > '\r' || byte == '\v' || is_long)
        return put_code(into, 0, byte);
    *into++ = '\\';
    *into++ = (uint8_t)SHORT[byte - '\b'];
    return into;
}

/* True if the bytes begin with U+2028 or U+2029. */
static int is_line_end(const uint8_t *at, const uint8_t *end)
{
    return end - at >= 3 && at[0] == LINE_END[0] && at[1] == LINE_END[1] && (at[2] | 1) == LINE_END[2];
}

uint8_t *put_text(uint8_t *into, const uint8_t *at, size_t size, Escapes escapes)
{
    const uint8_t *end = at + size;
    while (at < end) {
        uint64_t bytes;
        for (; end - at >= 8; at += 8) {
            memcpy(&bytes, at, 8);
            if (!is_plain(bytes, escapes))
                break;
            into = put_bytes(into, &bytes, 8);
        }
        const uint8_t *stop = end - at > 8 ? at + 8 : end;
        while (at < stop)
            if (escapes == HTML_ESCAPES && is_line_end(at, end)) {
                into = put_code(into, 0x20, at[2] & 0x2F);
                at += 3;
            } else
                into = put_character(into, *at++, escapes);
    }
    return into;
}

uint8_t *put_base64(uint8_t *into, const uint8_t *at, size_t size)
{
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)at[i] << 16;
        bits |= i + 1 < size ? (uint32_t)at[i + 1] << 8 : 0;
        bits |= i + 2 < size ? at[i + 2] : 0;
        for (int shift = 18; shift >= 0; shift -= 6)
            *into++ = (uint8_t)LETTERS[bits >> shift & 63];
    }
    for (size_t i = size % 3; i && i < 3; i++)
        into[(Py_ssize_t)i - 3] = '=';
    return into;
}
