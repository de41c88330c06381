"""TiDB's decimals: a byte of precision, one of scale, then MySQL's words of nine digits.

Words are big-endian, with the shorter ones first and last; the first bit is set for a number that isn't
negative, and a negative number has all bits inverted. Source: TiDB's types package (MyDecimal).
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Final

_WORD_DIGITS: Final = 9
_WORD_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes of a word of 0 to 9 digits."""

MAX_DIGITS: Final = 81
"""Nine words, more than a column may have: the digits of a product."""

_EXACT: Final = Context(prec=2 * MAX_DIGITS)


def words(precision: int, scale: int) -> list[int]:
    """Return the number of digits of each word. Raises ValueError for an invalid precision or scale."""
    whole = precision - scale
    if whole < 0 or precision > MAX_DIGITS:
        raise ValueError(f"there is no DECIMAL({precision},{scale})")
    sizes = (whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9)
    return [digits for digits in sizes if digits]


def word_bytes(digits: int) -> int:
    return _WORD_BYTES[digits]


def decimal_end(data: bytes, offset: int) -> int:
    """Return the end of the decimal that begins at `offset`."""
    if len(data) < offset + 2:
        raise ValueError(f"a decimal is cut off at {offset}: {data.hex()}")
    return offset + 2 + sum(map(word_bytes, words(data[offset], data[offset + 1])))


def decode_decimal(data: bytes) -> Decimal:
    """Decode `data` as one decimal, with the scale that it contains."""
    if decimal_end(data, 0) != len(data) or len(data) < 3:
        raise ValueError(f"these bytes aren't a decimal: {data.hex()}")
    scale = data[1]
    raw = bytes((data[2] ^ 0x80,)) + data[3:]
    negative = raw[0] & 0x80
    if negative:
        raw = bytes(byte ^ 0xFF for byte in raw)
    number, offset = 0, 0
    for digits in words(data[0], scale):
        size = word_bytes(digits)
        word = int.from_bytes(raw[offset : offset + size], "big")
        if word >= 10**digits:
            raise ValueError(f"a word of {digits} digits can't be {word}: {data.hex()}")
        number = number * 10**digits + word
        offset += size
    return _EXACT.scaleb(Decimal(-number if negative else number), -scale)


def encode_decimal(value: Decimal, precision: int, scale: int) -> bytes:
    """Encode `value` as DECIMAL(precision, scale). Raises ValueError if it doesn't fit."""
    number = int(_EXACT.scaleb(_EXACT.quantize(value, Decimal(1).scaleb(-scale)), scale))
    if abs(number) >= 10**precision:
        raise ValueError(f"{value} doesn't fit into DECIMAL({precision},{scale})")
    rest, parts = abs(number), []
    for digits in reversed(words(precision, scale)):
        rest, word = divmod(rest, 10**digits)
        parts.append(word.to_bytes(word_bytes(digits), "big"))
    raw = b"".join(reversed(parts))
    if number < 0:
        raw = bytes(byte ^ 0xFF for byte in raw)
    return bytes((precision, scale, raw[0] ^ 0x80)) + raw[1:]


def with_scale(value: Decimal, scale: int) -> Decimal:
    """Return the same number with its column's number of fractional digits."""
    return _EXACT.quantize(value, Decimal(1).scaleb(-scale))
