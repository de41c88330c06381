"""Datums with a flag byte: the elements of rows of format 1 and the keys of clustered tables.

A datum is read as the bare number or bytes after its flag; their meaning depends on the column (value.py).
Decimals stay the bytes of decimal.py, JSON those of json.py. Source: TiDB's codec package.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from ..decimal import decimal_end
from .json import json_end
from .key import decode_bytes, decode_int, encode_bytes, encode_int
from .number import (
    decode_float,
    decode_uint,
    decode_uvarint,
    decode_varint,
    encode_float,
    encode_uint,
    encode_uvarint,
    encode_varint,
)

Bare: TypeAlias = int | float | bytes | None
"""The value after a flag."""


class Flag(IntEnum):
    """The first byte of a datum."""

    NULL = 0
    BYTES = 1
    """Memory-comparable bytes, for keys."""
    COMPACT_BYTES = 2
    INT = 3
    UINT = 4
    FLOAT = 5
    DECIMAL = 6
    DURATION = 7
    VARINT = 8
    UVARINT = 9
    JSON = 10


def decode_datum(data: bytes, offset: int = 0) -> tuple[Flag, Bare, int]:
    """Return the datum at `offset`: its flag, its value, its end. Raises ValueError if it can't be read."""
    if offset >= len(data):
        raise ValueError(f"a datum is missing at {offset}: {data.hex()}")
    flag, offset = Flag(data[offset]), offset + 1
    bare, end = _decode(flag, data, offset)
    if end > len(data):
        raise ValueError(f"a datum is cut off at {offset}: {data.hex()}")
    return flag, bare, end


def _decode(flag: Flag, data: bytes, offset: int) -> tuple[Bare, int]:
    match flag:
        case Flag.NULL:
            return None, offset
        case Flag.BYTES:
            return decode_bytes(data, offset)
        case Flag.COMPACT_BYTES:
            size, offset = decode_varint(data, offset)
            if size < 0:
                raise ValueError(f"bytes of length {size} at {offset}: {data.hex()}")
            return data[offset : offset + size], offset + size
        case Flag.INT | Flag.DURATION:
            return decode_int(data, offset), offset + 8
        case Flag.UINT:
            return decode_uint(data, offset)
        case Flag.FLOAT:
            return decode_float(data, offset)
        case Flag.DECIMAL:
            end = decimal_end(data, offset)
        case Flag.VARINT:
            return decode_varint(data, offset)
        case Flag.UVARINT:
            return decode_uvarint(data, offset)
        case Flag.JSON:
            end = json_end(data, offset)
    return data[offset:end], end


def datum_end(data: bytes, offset: int) -> int:
    """Return the end of the datum at `offset`, which isn't decoded. Raises LookupError or ValueError."""
    flag = data[offset]
    offset += 1
    match flag:
        case Flag.VARINT | Flag.UVARINT:
            while data[offset] > 127:
                offset += 1
            return offset + 1
        case Flag.COMPACT_BYTES:
            size, offset = decode_varint(data, offset)
            return offset + size
        case Flag.NULL:
            return offset
        case Flag.FLOAT | Flag.INT | Flag.UINT | Flag.DURATION:
            return offset + 8
        case Flag.DECIMAL:
            return decimal_end(data, offset)
        case Flag.JSON:
            return json_end(data, offset)
    return decode_datum(data, offset - 1)[2]


def encode_datum(flag: Flag, bare: Bare) -> bytes:
    """Encode a flag and its value."""
    return bytes((flag,)) + _encode(flag, bare)


def _encode(flag: Flag, bare: Bare) -> bytes:
    match flag, bare:
        case Flag.NULL, None:
            return b""
        case Flag.BYTES, bytes():
            return encode_bytes(bare)
        case Flag.COMPACT_BYTES, bytes():
            return encode_varint(len(bare)) + bare
        case ((Flag.DECIMAL | Flag.JSON), bytes()):
            return bare
        case ((Flag.INT | Flag.DURATION), int()):
            return encode_int(bare)
        case Flag.UINT, int():
            return encode_uint(bare)
        case Flag.VARINT, int():
            return encode_varint(bare)
        case Flag.UVARINT, int():
            return encode_uvarint(bare)
        case Flag.FLOAT, float():
            return encode_float(bare)
    raise TypeError(f"{bare!r} can't be a datum of the kind {flag.name}")


def decode_datums(data: bytes, offset: int = 0) -> list[tuple[Flag, Bare]]:
    """Return all datums from `offset` on, as in a clustered key."""
    datums = []
    while offset < len(data):
        flag, bare, offset = decode_datum(data, offset)
        datums.append((flag, bare))
    return datums
