"""A table in the binlog: its Table_map, and its rows in the images of rows events.

Source: MariaDB's sql/log_event_server.cc and sql/rpl_record.cc; codec.mysql reads the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime
from ipaddress import ip_address
from typing import Any, Final, TypeAlias, assert_never
from uuid import UUID

from ...codec.mysql.charset import max_bytes, text_decoder
from ...codec.mysql.collation import BINARY, collation_id
from ...codec.mysql.field import NUMERIC, TEXTUAL, Type
from ...events import Column, Row, Table
from .bits import bitmap, lenenc, string
from .packed import decimal_bytes, fraction_bytes, moment_bytes, time_bytes

Encode: TypeAlias = Callable[[Any], bytes]

_INTEGERS: Final = {
    "tinyint": (Type.TINY, 1),
    "smallint": (Type.SHORT, 2),
    "mediumint": (Type.INT24, 3),
    "int": (Type.LONG, 4),
    "bigint": (Type.LONGLONG, 8),
}
_UTF8: Final = ("utf8mb4", "utf8mb3", "utf8", "ascii")
_SIGNS, _COLLATIONS, _NAMES, _SETS, _ENUMS, _KEY, _MEMBER_COLLATIONS = 1, 3, 4, 5, 6, 8, 11
"""Fields of the optional metadata, of binlog_row_metadata = FULL."""


class TableImage:
    """Encodes one definition of a table."""

    def __init__(self, table: Table) -> None:
        """Raises ValueError for a column that the emulator can't log."""
        self._types: list[int] = []
        """Types as in the Table_map, where an enum or set is a STRING."""
        self._real: list[int] = []
        self._sizes: list[bytes] = []
        self._encode: list[Encode] = []
        for column in table.columns:
            type_, real, size, encode = _column(column)
            self._types.append(type_)
            self._real.append(real)
            self._sizes.append(size)
            self._encode.append(encode)
        self._unused = -(1 << len(self._encode)) % (1 << 8 * self._bitmap_bytes)
        self._map = self._body(table)

    @property
    def _bitmap_bytes(self) -> int:
        return (len(self._encode) + 7) // 8

    def table_map(self, table_id: int) -> bytes:
        """Return the body of a Table_map event."""
        return table_id.to_bytes(6, "little") + b"\1\0" + self._map

    def rows_head(self, table_id: int, *, updates: bool, is_last: bool, is_extensible: bool) -> bytes:
        """Return the body of a rows event before its images; `is_extensible` is that of a MySQL, whose events
        have room for further parts."""
        width = len(self._encode)
        present = bitmap([True] * width) * (1 + updates)
        more = b"\2\0" if is_extensible else b""
        return table_id.to_bytes(6, "little") + bytes((is_last, 0)) + more + lenenc(width) + present

    def row(self, row: Row) -> bytes:
        """Return the image of a row."""
        nulls = sum(1 << i for i, value in enumerate(row) if value is None) | self._unused
        values = [encode(value) for encode, value in zip(self._encode, row, strict=True) if value is not None]
        return nulls.to_bytes(self._bitmap_bytes, "little") + b"".join(values)

    def _body(self, table: Table) -> bytes:
        columns = table.columns
        names = [string(name.encode()) + b"\0" for name in (table.schema, table.name)]
        body = b"".join(names) + string(bytes(self._types)) + string(b"".join(self._sizes))
        body += bitmap([column.nullable for column in columns])
        pairs = [*zip(columns, self._real, strict=True)]
        signs = [column.unsigned or column.kind == "year" for column, real in pairs if real in NUMERIC]
        if signs:
            high_first = bytes(int(f"{byte:08b}"[::-1], 2) for byte in bitmap(signs))
            body += _field(_SIGNS, high_first)
        textual = [_collation(column) for column, real in pairs if real in TEXTUAL]
        if textual:
            body += _field(_COLLATIONS, b"".join(map(lenenc, textual)))
        body += _field(_NAMES, b"".join(string(column.name.encode()) for column in columns))
        for number, type_ in (_SETS, Type.SET), (_ENUMS, Type.ENUM):
            listed = [_members(column) for column, real in pairs if real == type_]
            if listed:
                body += _field(number, b"".join(listed))
        members = [_collation(column) for column, real in pairs if real in (Type.ENUM, Type.SET)]
        if members:
            body += _field(_MEMBER_COLLATIONS, b"".join(map(lenenc, members)))
        if table.key:
            body += _field(_KEY, b"".join(map(lenenc, table.key)))
        return body


def _field(number: int, value: bytes) -> bytes:
    return bytes((number,)) + string(value)


def _collation(column: Column) -> int:
    if column.kind == "json":
        return collation_id("utf8mb4_bin")
    if column.charset is None:
        return BINARY
    try:
        return collation_id(column.collation or "")
    except LookupError:
        raise ValueError(f"column {column.name}: the emulator has no collation {column.collation}") from None


def _members(column: Column) -> bytes:
    encode = _text_encoder(column)
    return lenenc(len(column.members)) + b"".join(string(encode(member)) for member in column.members)


def _column(column: Column) -> tuple[int, int, bytes, Encode]:
    """Return a column's type in the Table_map, its real type, its metadata, and the encoder of a value."""

    def same(type_: int, size: bytes, encode: Encode) -> tuple[int, int, bytes, Encode]:
        return type_, type_, size, encode

    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            type_, width = _INTEGERS[column.kind]
            signed = not column.unsigned
            return same(type_, b"", lambda value: value.to_bytes(width, "little", signed=signed))
        case "decimal":
            digits, scale = column.length, column.scale
            size = bytes((digits, scale))
            return same(Type.NEWDECIMAL, size, lambda value: decimal_bytes(value, digits, scale))
        case "float":
            return same(Type.FLOAT, b"\4", struct.Struct("<f").pack)
        case "double":
            return same(Type.DOUBLE, b"\x08", struct.Struct("<d").pack)
        case "bit":
            width = (column.length + 7) // 8
            size = bytes((column.length % 8, column.length // 8))
            return same(Type.BIT, size, lambda value: value.to_bytes(width, "big"))
        case "year":
            return same(Type.YEAR, b"", lambda value: bytes((value - 1900 if value else 0,)))
        case "date":
            return same(Type.DATE, b"", _date_bytes)
        case "time":
            return same(Type.TIME2, bytes((column.scale,)), lambda value: time_bytes(value, column.scale))
        case "datetime":
            scale = column.scale
            return same(Type.DATETIME2, bytes((scale,)), lambda value: moment_bytes(_parts(value), scale))
        case "timestamp":
            scale = column.scale
            return same(Type.TIMESTAMP2, bytes((scale,)), lambda value: _timestamp_bytes(value, scale))
        case "char" | "binary":
            width = column.length * max_bytes(column.charset or "binary")
            return same(
                Type.STRING, _string_size(width), _counted(1 + (width > 255), _string_encoder(column))
            )
        case "varchar" | "varbinary":
            width = column.length * max_bytes(column.charset or "binary")
            return same(
                Type.VARCHAR,
                width.to_bytes(2, "little"),
                _counted(1 + (width > 255), _string_encoder(column)),
            )
        case "text" | "blob":
            return same(Type.BLOB, bytes((column.length,)), _counted(column.length, _string_encoder(column)))
        case "json":
            return same(Type.BLOB, b"\4", _counted(4, str.encode))
        case "geometry":
            return same(Type.GEOMETRY, b"\4", _counted(4, bytes))
        case "uuid":  # in the order of its text, as the server stores random ones
            return same(Type.STRING, _string_size(16), _counted(1, lambda value: UUID(value).bytes))
        case "inet4" | "inet6":
            width = 4 if column.kind == "inet4" else 16
            return same(Type.STRING, _string_size(width), _counted(1, lambda value: ip_address(value).packed))
        case "enum":
            numbers = {member: number for number, member in enumerate(column.members, 1)}
            width = 1 if len(numbers) < 256 else 2
            size = bytes((Type.ENUM, width))
            return Type.STRING, Type.ENUM, size, lambda value: numbers[value].to_bytes(width, "little")
        case "set":
            bits = {member: 1 << i for i, member in enumerate(column.members)} | {"": 0}
            width = (len(column.members) + 7) // 8 if len(column.members) <= 32 else 8

            def encode(value: str) -> bytes:
                return sum(bits[member] for member in value.split(",")).to_bytes(width, "little")

            return Type.STRING, Type.SET, bytes((Type.SET, width)), encode
        case "vector":
            raise ValueError(f"column {column.name}: the emulator has no VECTOR")
        case _:
            assert_never(column.kind)


def _string_size(width: int) -> bytes:
    """Return the metadata of a STRING: the top two bits of its width are in the type, inverted."""
    return bytes((Type.STRING ^ (width >> 4 & 0x30), width & 0xFF))


def _counted(prefix: int, encode: Encode) -> Encode:
    """Return the encoder that puts the length, of `prefix` bytes, before a value."""

    def counted(value: object) -> bytes:
        data = encode(value)
        return len(data).to_bytes(prefix, "little") + data

    return counted


def _string_encoder(column: Column) -> Encode:
    if column.kind == "binary":
        return lambda value: value.rstrip(b"\0")
    return bytes if column.charset is None else _text_encoder(column)


def _text_encoder(column: Column) -> Encode:
    charset = column.charset or ""
    if charset in _UTF8:
        return lambda text: text.encode("ascii" if charset == "ascii" else "utf-8")
    if max_bytes(charset) > 1:
        raise ValueError(
            f"column {column.name}: the emulator has no CHARACTER SET {charset}; it has utf8mb4, utf8mb3, "
            "and those of one byte a character"
        )
    decode = text_decoder(charset)
    codes = {decode(bytes((code,))): code for code in range(255, -1, -1)}

    def encode(text: str) -> bytes:
        try:
            return bytes([codes[character] for character in text])
        except KeyError as character:
            raise ValueError(f"column {column.name}: {charset} has no {character}") from None

    return encode


def _parts(value: date | str) -> tuple[int, ...]:
    """Return the numbers of a date and time; a text is one that no calendar has."""
    if isinstance(value, datetime):
        return *value.timetuple()[:6], value.microsecond
    if isinstance(value, date):
        return value.year, value.month, value.day, 0, 0, 0, 0
    day, _, clock = value.partition(" ")
    whole, _, fraction = (clock or "0:0:0").partition(".")
    return *map(int, (*day.split("-"), *whole.split(":"))), int(fraction.ljust(6, "0"))


def _date_bytes(value: date | str) -> bytes:
    year, month, day, *_ = _parts(value)
    return (year << 9 | month << 5 | day).to_bytes(3, "little")


def _timestamp_bytes(value: datetime | str, scale: int) -> bytes:
    seconds, micros = (int(value.timestamp()), value.microsecond) if isinstance(value, datetime) else (0, 0)
    return seconds.to_bytes(4, "big") + fraction_bytes(micros, scale)
