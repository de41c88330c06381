"""Avro's binary encoding of single values."""

from __future__ import annotations

from decimal import Decimal
from struct import Struct
from typing import Any, Final

_PREPARED: Final = 1 << 14
"""Numbers that take up to two bytes."""


def _bytes(number: int) -> bytes:
    return bytes((number,)) if number < 0x80 else bytes((number & 0x7F | 0x80, number >> 7))


SMALL: Final = [_bytes(number) for number in range(_PREPARED)]
"""Bytes of numbers below 2^14 as they are written after zigzag."""
_MORE: Final = [bytes((number & 0x7F | 0x80, number >> 7 | 0x80)) for number in range(_PREPARED)]
_BITS: Final = 14


def long_bytes(number: int) -> bytes:
    """Return a number of at most 64 bits as int or long, which are written in the same way."""
    zigzag = number << 1 if number >= 0 else ~(number << 1)
    if zigzag < _PREPARED:
        return SMALL[zigzag]
    found = b""
    while zigzag >= _PREPARED:
        found += _MORE[zigzag & (_PREPARED - 1)]
        zigzag >>= _BITS
    return found + SMALL[zigzag]


class Lengths(dict[int, bytes]):
    """The bytes of lengths; those of short values are kept."""

    def __missing__(self, length: int) -> bytes:
        found = long_bytes(length)
        if length < _PREPARED:
            self[length] = found
        return found


def text_bytes(value: str) -> bytes:
    encoded = value.encode()
    return long_bytes(len(encoded)) + encoded


def unscaled_bytes(value: Decimal, scale: int) -> bytes:
    """Return the digits of a decimal as the shortest number in two's complement, high byte first."""
    digits = int(f"{value:.{scale}f}".replace(".", ""))
    size = (digits + (digits < 0)).bit_length() // 8 + 1
    return digits.to_bytes(size, "big", signed=True)


float_bytes: Final = Struct("<f").pack
double_bytes: Final = Struct("<d").pack

NULL: Final = b"\0"
"""Null as the first branch of a union."""
FIRST: Final = b"\0"
SECOND: Final = b"\2"
"""Numbers of a union's branches."""


def avro_bytes(schema: Any, value: Any) -> bytes:
    """Return a value by its schema, for what isn't written for each row.

    A record is a dict; a union has null and one other branch. Names of records aren't resolved.
    """
    if isinstance(schema, list):
        place = next(i for i, branch in enumerate(schema) if (branch == "null") == (value is None))
        return long_bytes(place) + avro_bytes(schema[place], value)
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case "record":
            fields = schema["fields"]
            return b"".join([avro_bytes(one["type"], value[one["name"]]) for one in fields])
        case "array":
            items = [avro_bytes(schema["items"], item) for item in value]
            return b"".join([long_bytes(len(items)), *items, NULL]) if items else NULL
        case "null":
            return b""
        case "boolean":
            return b"\1" if value else b"\0"
        case "int" | "long":
            return long_bytes(value)
        case "string":
            return text_bytes(value)
    raise NotImplementedError(f"Avro's type {kind}")
