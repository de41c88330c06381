"""A column's conversions between the stored bare value and the value of events.Column."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, assert_never

from msgspec import Struct

from ...events import Kind, not_a_member
from ..decimal import decode_decimal, encode_decimal, with_scale
from ..mysql.values import set_printer
from . import storage
from .column_type import ColumnFlag, is_unsigned, kind_of
from .json import decode_json, encode_json
from .json_text import parse_json, print_json
from .storage import Storage
from .table_info import ColumnInfo
from .time import (
    decode_date,
    decode_datetime,
    decode_duration,
    decode_timestamp,
    encode_datetime,
    encode_duration,
)

UNREADABLE: Final = (struct.error, LookupError, ValueError, ArithmeticError)
"""Exceptions raised for invalid bytes."""

_FLOAT32: Final = struct.Struct("<f")


class Field(Struct, frozen=True):
    """A column with its conversions from and to the stored value."""

    column: ColumnInfo
    kind: Kind
    storage: Storage
    read: Callable[[Any], Any]
    """Converts a bare value to a value; raises one of UNREADABLE for an invalid one."""
    write: Callable[[Any], Any]
    """Converts a value, or its text, to a bare value. Raises ValueError or TypeError for an invalid one."""

    @property
    def scale(self) -> int:
        """Number of fractional digits, of a decimal or of the seconds."""
        return max(self.column.decimal, 0)

    def default(self) -> object:
        """The value in a row without the column: an older row, one that omits a NULL, or one that was written
        while the column was being dropped, in which even a NOT NULL column is missing."""
        bare = self.bare_default()
        return None if bare is None else self.read(bare)

    def bare_default(self) -> object:
        """The same as it is stored. Raises ValueError or TypeError if the definition's default is invalid."""
        column = self.column
        if self.kind == "bit" and column.origin_default_bit is not None:
            return int.from_bytes(column.origin_default_bit, "big")
        if column.origin_default is None:
            return self.write(self._zero()) if column.flags & ColumnFlag.NOT_NULL else None
        text = str(column.origin_default)
        if self.kind == "bit":
            return int.from_bytes(text.encode(), "big")
        return self.write(text)

    def _zero(self) -> str:
        """The text of the zero value of a NOT NULL column."""
        match self.kind:
            case "enum":
                return self.column.elements[0]
            case "date" | "datetime" | "timestamp":
                return "0000-00-00"
            case "time":
                return "00:00:00"
            case "json":
                return "null"
            case "set" | "char" | "varchar" | "text" | "binary" | "varbinary" | "blob":
                return ""
            case (
                "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double"
                | "bit" | "year" | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
            ):  # fmt: skip
                return "0"
            case _:
                assert_never(self.kind)


def field_of(column: ColumnInfo) -> Field:
    """Return the conversions of a column. Raises ValueError for an unknown type."""
    kind = kind_of(column)
    stored, read, write = _ways(kind, column)
    return Field(column, kind, stored, read, write)


def _ways(kind: Kind, column: ColumnInfo) -> tuple[Storage, Callable[[Any], Any], Callable[[Any], Any]]:
    scale = max(column.decimal, 0)
    match kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            return storage.UINT if is_unsigned(column) else storage.INT, _same, int
        case "year":
            return storage.INT, _same, int
        case "bit":
            return storage.UINT, _same, int
        case "float":
            return storage.FLOAT, _same, _float32
        case "double":
            return storage.FLOAT, _same, float
        case "decimal":
            return storage.DECIMAL, lambda bare: with_scale(decode_decimal(bare), scale), _decimal(column)
        case "date":
            return storage.MOMENT, decode_date, encode_datetime
        case "datetime":
            return storage.MOMENT, lambda bare: decode_datetime(bare, scale), encode_datetime
        case "timestamp":
            return storage.MOMENT, lambda bare: decode_timestamp(bare, scale), encode_datetime
        case "time":
            return storage.DURATION, (lambda bare: decode_duration(bare, scale)), encode_duration
        case "enum":
            return storage.UINT, (not_a_member(column.elements), *column.elements).__getitem__, _enum(column)
        case "set":
            return storage.UINT, set_printer(column.elements), _set(column)
        case "json":
            return storage.JSON, lambda bare: print_json(decode_json(bare)), _json
        case "binary":
            return storage.BYTES, _same, lambda value: _bytes(value).ljust(column.length, b"\0")
        case "varbinary" | "blob":
            return storage.BYTES, _same, _bytes
        case "char" | "varchar" | "text" | "uuid" | "inet4" | "inet6" | "geometry" | "vector":
            # Text that is not UTF-8 (written without the check of TiDB) is refused: TiDB returns its bytes,
            # which a str cannot contain.
            return storage.BYTES, bytes.decode, str.encode
        case _:
            assert_never(kind)


def _same(bare: object) -> object:
    return bare


def _float32(value: float | str) -> float:
    x: float = _FLOAT32.unpack(_FLOAT32.pack(float(value)))[0]
    return x


def _decimal(column: ColumnInfo) -> Callable[[Decimal | int | str], bytes]:
    precision, scale = column.length, max(column.decimal, 0)
    return lambda value: encode_decimal(Decimal(value), precision, scale)


def _enum(column: ColumnInfo) -> Callable[[str], int]:
    numbers = {member: number for number, member in enumerate(column.elements, 1)}
    numbers[not_a_member(column.elements)] = 0

    def write(value: str) -> int:
        if value not in numbers:
            raise ValueError(f"{value!r} isn't one of {', '.join(column.elements)}")
        return numbers[value]

    return write


def _set(column: ColumnInfo) -> Callable[[str], int]:
    bits = {member: 1 << number for number, member in enumerate(column.elements)}

    def write(value: str) -> int:
        members = value.split(",") if value else []
        if any(member not in bits for member in members):
            raise ValueError(f"{value!r} isn't a set of {', '.join(column.elements)}")
        return sum({bits[member] for member in members})

    return write


def _json(value: object) -> bytes:
    return encode_json(parse_json(value) if isinstance(value, str) else value)


def _bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
