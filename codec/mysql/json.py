"""MySQL's binary JSON, and the text that MySQL prints of it.

A document is a byte of type, then the value. An array is the number of its elements, its size, and for each
element a type and an offset, or the value itself if it is small enough; an object has the offsets and lengths
of its keys before those. Source: MySQL's json_binary.h.
"""

from __future__ import annotations

from base64 import encodebytes
from json.encoder import encode_basestring
from struct import Struct as Packing
from typing import Final, TypeAlias

from ..decimal import decode_decimal
from .field import Type
from .values import packed_time, printed_datetime, printed_time

Json: TypeAlias = "str | list[Json] | dict[str, Json]"
"""A scalar's text as MySQL prints it, or a container."""

_MAX_DEPTH: Final = 100
"""The server refuses documents that are nested deeper."""

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = range(5)
_DOUBLE, _STRING, _OPAQUE = 0x0B, 0x0C, 0x0F
_INTEGERS: Final = {
    0x05: Packing("<h"),
    0x06: Packing("<H"),
    0x07: Packing("<i"),
    0x08: Packing("<I"),
    0x09: Packing("<q"),
    0x0A: Packing("<Q"),
}
_INLINE: Final = frozenset({_LITERAL, 0x05, 0x06})
"""Types that are in an element's entry, in place of an offset."""
_INLINE_LARGE: Final = _INLINE | {0x07, 0x08}
_LITERALS: Final = {0: "null", 1: "true", 2: "false"}

_u16 = Packing("<H").unpack_from
_u32 = Packing("<I").unpack_from
_i64 = Packing("<q").unpack_from
_double = Packing("<d").unpack_from

_FIXED_POINT_DIGITS: Final = 15
"""A double is printed without an exponent if it has up to this many digits before its point, or fewer zeros
than this after it."""


def json_text(data: bytes) -> str:
    """Return a document's text. Raises ValueError, LookupError or struct.error for bytes that aren't one."""
    return print_json(decode_json(data))


def decode_json(data: bytes) -> Json:
    """Decode a document; errors as json_text. Takes time in proportion to the size of `data`."""
    if not data:  # a NOT NULL column without a value
        return "null"
    return _Decoder(data).value(data[0], 1, len(data), _MAX_DEPTH)


def print_json(value: Json) -> str:
    """Return the text: one line with a space after each comma and colon."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(print_json, value))}]"
    members = [f"{encode_basestring(key)}: {print_json(element)}" for key, element in value.items()]
    return f"{{{', '.join(members)}}}"


class _Decoder:
    """Reads values; no byte may be part of two of them, so that damage can't make a small document large."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._unread = len(data)

    def value(self, type_: int, offset: int, end: int, depth: int) -> Json:
        """Return the value at `offset`, which ends at or before `end`."""
        data = self._data
        if type_ <= _LARGE_ARRAY:
            return self._container(type_, offset, end, depth)
        if type_ == _LITERAL:
            return _LITERALS[data[offset]]
        if type_ in _INTEGERS:
            return str(_INTEGERS[type_].unpack_from(data, offset)[0])
        if type_ == _DOUBLE:
            return print_double(_double(data, offset)[0])
        if type_ == _STRING:
            return encode_basestring(self._counted(offset, end).decode())
        if type_ == _OPAQUE:
            return _opaque(data[offset], self._counted(offset + 1, end))
        raise ValueError(f"JSON has no type {type_}")

    def _counted(self, offset: int, end: int) -> bytes:
        """Return the bytes after their length, which has 7 bits in a byte, the low ones first."""
        length = shift = 0
        while True:
            byte = self._data[offset]
            offset += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                raise ValueError("a length of JSON has more than 5 bytes")
        return self._take(offset, length, end)

    def _take(self, offset: int, length: int, end: int) -> bytes:
        self._count(length)
        if offset + length > end:
            raise ValueError("a value of JSON is cut off")
        return self._data[offset : offset + length]

    def _count(self, size: int) -> None:
        self._unread -= size
        if self._unread < 0:
            raise ValueError("values of JSON share their bytes")

    def _container(self, type_: int, start: int, end: int, depth: int) -> Json:
        if not depth:
            raise ValueError("JSON is nested too deep")
        data = self._data
        number, size = (_u32, 4) if type_ in (_LARGE_OBJECT, _LARGE_ARRAY) else (_u16, 2)
        count, whole = number(data, start)[0], number(data, start + size)[0]
        if start + whole > end:
            raise ValueError("a container of JSON is cut off")
        end = start + whole
        offset = start + 2 * size
        is_object = type_ <= _LARGE_OBJECT
        entries = offset + count * (size + 2) if is_object else offset
        self._count(2 * size + entries - offset + count * (1 + size))
        inline = _INLINE if size == 2 else _INLINE_LARGE
        elements = []
        for entry in range(entries, entries + count * (1 + size), 1 + size):
            kind = data[entry]
            if kind in inline:
                elements.append(self.value(kind, entry + 1, end, 0))
            else:
                elements.append(self.value(kind, start + number(data, entry + 1)[0], end, depth - 1))
        if not is_object:
            return elements
        keys = []
        for entry in range(offset, entries, size + 2):
            key = start + number(data, entry)[0]
            keys.append(self._take(key, _u16(data, entry + size)[0], end).decode())
        made = dict(zip(keys, elements, strict=True))
        if len(made) != count:
            raise ValueError("an object of JSON has a key twice")
        return made


def print_double(x: float) -> str:
    """Print a double with the fewest digits that give the same number, as MySQL's my_gcvt does: 1.0, 1e20."""
    sign = "-" if repr(x).startswith("-") else ""
    mantissa, _, power = repr(abs(x)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(power or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return sign + "0.0"
    if not digits.isdecimal():
        raise ValueError("JSON has no such number")
    if not (point > -_FIXED_POINT_DIGITS and (point <= _FIXED_POINT_DIGITS or point < len(digits))):
        return f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def _opaque(type_: int, data: bytes) -> str:
    match type_:
        case Type.NEWDECIMAL:
            return f"{decode_decimal(data):f}"
        case Type.DATE:
            return f'"{_moment(data)[:10]}"'
        case Type.DATETIME | Type.TIMESTAMP:
            return f'"{_moment(data)}"'
        case Type.TIME:
            return f'"{printed_time(packed_time(_packed(data), 24, 1), 6)}"'
    # A line has 76 characters, and only the last line isn't ended.
    return encode_basestring(f"base64:type{type_}:{encodebytes(data).decode().removesuffix(chr(10))}")


def _packed(data: bytes) -> int:
    if len(data) != 8:
        raise ValueError("a time in JSON hasn't 8 bytes")
    packed: int = _i64(data)[0]
    return packed


def _moment(data: bytes) -> str:
    """Print 17 bits of year * 13 + month, 5 of day, 5 of hour, 6 of minute, 6 of second and 24 of micros."""
    packed = _packed(data)
    if packed < 0:
        raise ValueError("a negative date in JSON")
    months, clock = packed >> 46, packed >> 24 & 0x1FFFF
    year, month, day = months // 13, months % 13, packed >> 41 & 31
    return printed_datetime(year, month, day, clock >> 12, clock >> 6 & 63, clock & 63, packed & 0xFFFFFF, 6)
