"""TiDB's binary JSON: encoding, decoding, and the text that TiDB prints of it.

A value is a byte of type, then its body. An array's body is the number of its elements, its own size, and for
each element a type and the offset of its body (a literal is inline). An object has before those the offsets
and lengths of its keys, which are sorted by their bytes. Source: TiDB's types package.
"""

from __future__ import annotations

from struct import Struct as Packing
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from .number import decode_uvarint, encode_uvarint

OBJECT: Final = 0x01
ARRAY: Final = 0x03
LITERAL: Final = 0x04
INT64: Final = 0x09
UINT64: Final = 0x0A
FLOAT64: Final = 0x0B
STRING: Final = 0x0C
OPAQUE: Final = 0x0D
DATE: Final = 0x0E
DATETIME: Final = 0x0F
TIMESTAMP: Final = 0x10
DURATION: Final = 0x11

_HEAD: Final = Packing("<II")
_KEY: Final = Packing("<IH")
_ENTRY: Final = Packing("<BI")
_NUMBERS: Final = {INT64: Packing("<q"), UINT64: Packing("<Q"), FLOAT64: Packing("<d")}
_MOMENT: Final = Packing("<Q")
_DURATION: Final = Packing("<qI")
_LITERALS: Final[dict[int, bool | None]] = {0: None, 1: True, 2: False}
_KEEP: Final = "surrogateescape"
_LITERAL_BYTES: Final[dict[bool | None, bytes]] = {None: b"\0", True: b"\1", False: b"\2"}

Json: TypeAlias = Any
"""None, bool, int, Uint64, float, str, Opaque, Moment, Duration, a list or a dict of these."""


class Uint64(int):
    """An integer stored as unsigned."""


class Opaque(Struct, frozen=True):
    """Bytes with the number of their column type."""

    type: int
    data: bytes


class Moment(Struct, frozen=True):
    """A date, datetime or timestamp.

    `core` is year << 50 | month << 46 | day << 41 | hour << 36 | minute << 30 | second << 24 | micros << 4.
    """

    type: int
    core: int


class Duration(Struct, frozen=True):
    nanoseconds: int
    scale: int


def json_end(data: bytes, offset: int) -> int:
    """Return the end of the value that begins at `offset`. Raises ValueError if there is none."""
    if offset >= len(data):
        raise ValueError(f"JSON is missing at {offset}")
    return _body_end(data[offset], data, offset + 1)


def _body_end(type_: int, data: bytes, offset: int) -> int:
    match type_:
        case 0x01 | 0x03:
            if len(data) < offset + _HEAD.size:
                raise ValueError(f"JSON is cut off at {offset}")
            size: int = _HEAD.unpack_from(data, offset)[1]
            return offset + size
        case 0x04:
            return offset + 1
        case 0x09 | 0x0A | 0x0B | 0x0E | 0x0F | 0x10:
            return offset + 8
        case 0x0C:
            length, start = decode_uvarint(data, offset)
            return start + length
        case 0x0D:
            length, start = decode_uvarint(data, offset + 1)
            return start + length
        case 0x11:
            return offset + _DURATION.size
    raise ValueError(f"JSON has no type {type_:#04x}")


def decode_json(data: bytes) -> Json:
    """Decode `data` as one value. Raises ValueError if it isn't JSON.

    Takes time in proportion to the size of `data`: each byte belongs to one value only, so values that share
    their bytes, or contain themselves, run out of bytes. Nesting has no limit, as in older TiDBs.
    """
    if json_end(data, 0) != len(data):
        raise ValueError("JSON is cut off or has bytes behind it")
    made: list[Json] = [None]
    unread, todo = len(data), [_Element(made, 0, data[0], 1, len(data))]
    while todo:
        element = todo.pop()
        end = _body_end(element.type, data, element.offset)
        if end > element.limit:
            raise ValueError(f"JSON is cut off at {element.offset}")
        if element.type in (OBJECT, ARRAY):
            value, taken, elements = _open(element.type, data, element.offset, end)
            todo += elements
        else:
            value, taken = _leaf(element.type, data, element.offset, end), end - element.offset
        unread -= taken
        if unread < 0:
            raise ValueError("values of JSON share their bytes")
        element.container[element.key] = value
    return made[0]


class _Element(NamedTuple):
    """A value that is still to be read, from `offset` up to `limit`, with its place in a container."""

    container: Any
    key: int | str
    type: int
    offset: int
    limit: int


def _open(type_: int, data: bytes, offset: int, end: int) -> tuple[Json, int, list[_Element]]:
    """Return a container with None for all elements, the size of its head, and the elements to read."""
    count, size = _HEAD.unpack_from(data, offset)
    entries = offset + _HEAD.size + (count * _KEY.size if type_ == OBJECT else 0)
    if entries + count * _ENTRY.size > end:
        raise ValueError(f"JSON of {size} bytes can't have {count} elements")
    taken = entries + count * _ENTRY.size - offset
    keys: list[Any] = list(range(count))
    if type_ == OBJECT:
        places = [_KEY.unpack_from(data, offset + _HEAD.size + k * _KEY.size) for k in keys]
        taken += sum(length for _, length in places)
        if taken > size or any(place + length > size for place, length in places):
            raise ValueError(f"a key of JSON at {offset} is cut off")
        keys = [_text(data[offset + place : offset + place + length]) for place, length in places]
    value: Json = dict.fromkeys(keys) if type_ == OBJECT else [None] * count
    elements = []
    for k, key in enumerate(keys):
        entry = entries + k * _ENTRY.size
        element_type, place = _ENTRY.unpack_from(data, entry)
        if element_type == LITERAL:  # it is inline
            value[key] = _literal(data[entry + 1])
        else:
            elements.append(_Element(value, key, element_type, offset + place, end))
    return value, taken, elements


def _leaf(type_: int, data: bytes, offset: int, end: int) -> Json:
    match type_:
        case 0x04:
            return _literal(data[offset])
        case 0x09 | 0x0B:
            return _NUMBERS[type_].unpack_from(data, offset)[0]
        case 0x0A:
            return Uint64(_NUMBERS[type_].unpack_from(data, offset)[0])
        case 0x0C:
            return _text(data[decode_uvarint(data, offset)[1] : end])
        case 0x0D:
            return Opaque(data[offset], data[decode_uvarint(data, offset + 1)[1] : end])
        case 0x11:
            return Duration(*_DURATION.unpack_from(data, offset))
    return Moment(type_, _MOMENT.unpack_from(data, offset)[0])


def _literal(byte: int) -> bool | None:
    if byte not in _LITERALS:
        raise ValueError(f"JSON has no literal {byte:#04x}")
    return _LITERALS[byte]


def _text(data: bytes) -> str:
    """Decode a string or a key. Up to v6.1 a binary string is stored like text: a byte that isn't UTF-8
    becomes a lone surrogate, so that it is printed as by TiDB and two such keys stay distinct."""
    return data.decode("utf-8", _KEEP)


# --- to bytes ------------------------------------------------------------------------------------


def encode_json(value: Json) -> bytes:
    """Encode a value as TiDB stores it. Raises TypeError for a value that JSON doesn't have."""
    type_, body = _encode(value)
    return bytes((type_,)) + body


def _encode(value: Json) -> tuple[int, bytes]:
    match value:
        case None | bool():
            return LITERAL, _LITERAL_BYTES[value]
        case Uint64():
            return UINT64, _NUMBERS[UINT64].pack(value)
        case int():
            return _encode_int(value)
        case float():
            return FLOAT64, _NUMBERS[FLOAT64].pack(value)
        case str():
            text = value.encode("utf-8", _KEEP)
            return STRING, encode_uvarint(len(text)) + text
        case Opaque():
            return OPAQUE, bytes((value.type,)) + encode_uvarint(len(value.data)) + value.data
        case Moment():
            return value.type, _MOMENT.pack(value.core)
        case Duration():
            return DURATION, _DURATION.pack(value.nanoseconds, value.scale)
        case list():
            return ARRAY, _sized(len(value), b"", _HEAD.size, value)
        case dict():
            return OBJECT, _encode_object({key.encode("utf-8", _KEEP): value[key] for key in value})
    raise TypeError(f"JSON has no value {value!r}")


def _encode_int(value: int) -> tuple[int, bytes]:
    if -1 << 63 <= value < 1 << 63:
        return INT64, _NUMBERS[INT64].pack(value)
    if 0 < value < 1 << 64:
        return UINT64, _NUMBERS[UINT64].pack(value)
    return FLOAT64, _NUMBERS[FLOAT64].pack(float(value))


def _encode_object(value: dict[bytes, Json]) -> bytes:
    keys = sorted(value)
    entries_end = _HEAD.size + len(keys) * (_KEY.size + _ENTRY.size)
    places, offset = [], entries_end
    for key in keys:
        places.append(_KEY.pack(offset, len(key)))
        offset += len(key)
    names = b"".join(keys)
    return _sized(len(keys), b"".join(places), _HEAD.size, [value[key] for key in keys], names)


def _sized(count: int, keys: bytes, start: int, elements: list[Json], names: bytes = b"") -> bytes:
    """Build the body of an array, or of an object whose key entries and key texts are given."""
    offset = start + len(keys) + count * _ENTRY.size + len(names)
    entries, bodies = [], []
    for element in elements:
        type_, body = _encode(element)
        if type_ == LITERAL:
            entries.append(_ENTRY.pack(type_, body[0]))
            continue
        entries.append(_ENTRY.pack(type_, offset))
        bodies.append(body)
        offset += len(body)
    return b"".join((_HEAD.pack(count, offset), keys, *entries, names, *bodies))
