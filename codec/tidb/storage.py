"""Storage of a column's bare value in a row and in a key.

A row of format 2 has cells of bytes without a flag; format 1 and keys have datums with one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from .datum import Bare, Flag
from .number import (
    decode_float,
    decode_int_cell,
    decode_uint_cell,
    encode_float,
    encode_int_cell,
    encode_uint_cell,
)


class Storage(Struct, frozen=True):
    """One way to store a bare value; `decode` raises ValueError for a cell that holds no such value."""

    row_flag: Flag
    key_flag: Flag
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]

    def checked(self, flag: Flag, bare: Bare) -> Bare:
        """Return `bare`, which followed `flag`; raises ValueError for a flag that can't be this column's."""
        if flag not in (self.row_flag, self.key_flag):
            raise ValueError(f"a datum of the kind {flag.name} is in the place of {self.row_flag.name}")
        return bare


def _float_cell(data: bytes) -> float:
    x, end = decode_float(data, 0)
    if end != len(data):
        raise ValueError(f"a float can't take {len(data)} bytes: {data.hex()}")
    return x


def _same(data: bytes) -> bytes:
    return data


INT: Final = Storage(Flag.VARINT, Flag.INT, decode_int_cell, encode_int_cell)
UINT: Final = Storage(Flag.UVARINT, Flag.UINT, decode_uint_cell, encode_uint_cell)
MOMENT: Final = UINT
"""A packed date and time."""
DURATION: Final = Storage(Flag.VARINT, Flag.DURATION, decode_int_cell, encode_int_cell)
FLOAT: Final = Storage(Flag.FLOAT, Flag.FLOAT, _float_cell, encode_float)
BYTES: Final = Storage(Flag.COMPACT_BYTES, Flag.BYTES, _same, _same)
DECIMAL: Final = Storage(Flag.DECIMAL, Flag.DECIMAL, _same, _same)
JSON: Final = Storage(Flag.JSON, Flag.JSON, _same, _same)
