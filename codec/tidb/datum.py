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


def decode_datum(data: bytes, at: int = 0) -> tuple[Flag, Bare, int]:
    """Return the datum at `at`: its flag, its value, its end. Raises ValueError if it can't be read."""
    if at >= len(data):
        raise ValueError(f"a datum is missing at {at}: {data.hex()}")
    flag, at = Flag(data[at]), at + 1
    bare, end = _decode(flag, data, at)
    if end > len(data):
        raise ValueError(f"a datum is cut off at {at}: {data.hex()}")
    return flag, bare, end


def _decode(flag: Flag, data: bytes, at: int) -> tuple[Bare, int]:
    match flag:
        case Flag.NULL:
            return None, at
        case Flag.BYTES:
            return decode_bytes(data, at)
        case Flag.COMPACT_BYTES:
            size, at = decode_varint(data, at)
            if size < 0:
                raise ValueError(f"bytes of length {size} at {at}: {data.hex()}")
            return data[at : at + size], at + size
        case Flag.INT | Flag.DURATION:
            return decode_int(data, at), at + 8
        case Flag.UINT:
            return decode_uint(data, at)
        case Flag.FLOAT:
            return decode_float(data, at)
        case Flag.DECIMAL:
            end = decimal_end(data, at)
        case Flag.VARINT:
            return decode_varint(data, at)
        case Flag.UVARINT:
            return decode_uvarint(data, at)
        case Flag.JSON:
            end = json_end(data, at)
    return data[at:end], end


def datum_end(data: bytes, at: int) -> int:
    """Return the end of the datum at `at`, which isn't decoded. Raises LookupError or ValueError."""
    flag = data[at]
    at += 1
    match flag:
        case Flag.VARINT | Flag.UVARINT:
            while data[at] > 127:
                at += 1
            return at + 1
        case Flag.COMPACT_BYTES:
            size, at = decode_varint(data, at)
            return at + size
        case Flag.NULL:
            return at
        case Flag.FLOAT | Flag.INT | Flag.UINT | Flag.DURATION:
            return at + 8
        case Flag.DECIMAL:
            return decimal_end(data, at)
        case Flag.JSON:
            return json_end(data, at)
    return decode_datum(data, at - 1)[2]


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


def decode_datums(data: bytes, at: int = 0) -> list[tuple[Flag, Bare]]:
    """Return all datums from `at` on, as in a clustered key."""
    datums = []
    while at < len(data):
        flag, bare, at = decode_datum(data, at)
        datums.append((flag, bare))
    return datums
