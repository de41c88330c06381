"""A column in a row image of the binlog."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final

from msgspec import Struct

from ...events import Column, Kind, Table


class Type(IntEnum):
    """Column types, by the numbers of the protocol (MySQL's field_types.h)."""

    OLD_DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


UNSUPPORTED: Final[dict[int, str]] = {
    Type.OLD_DECIMAL: "DECIMAL in the format before MySQL 5.0",
}

METADATA_BYTES: Final[dict[int, int]] = {
    **dict.fromkeys((Type.FLOAT, Type.DOUBLE, Type.BLOB, Type.GEOMETRY, Type.JSON, Type.VECTOR), 1),
    **dict.fromkeys((Type.TIME2, Type.DATETIME2, Type.TIMESTAMP2, Type.BLOB_COMPRESSED), 1),
    **dict.fromkeys((Type.VARCHAR, Type.VAR_STRING, Type.BIT, Type.NEWDECIMAL, Type.STRING), 2),
    **dict.fromkeys((Type.ENUM, Type.SET, Type.VARCHAR_COMPRESSED), 2),
}
"""Bytes of metadata per column in a Table_map event; other types have none."""

NUMERIC: Final = frozenset({
    Type.OLD_DECIMAL, Type.TINY, Type.SHORT, Type.INT24, Type.LONG, Type.LONGLONG, Type.NEWDECIMAL,
    Type.FLOAT, Type.DOUBLE, Type.YEAR,
})  # fmt: skip
"""Types with a bit in the metadata's signedness."""

TEXTUAL: Final = frozenset({
    Type.STRING, Type.VAR_STRING, Type.VARCHAR, Type.BLOB, Type.GEOMETRY, Type.BLOB_COMPRESSED,
    Type.VARCHAR_COMPRESSED, Type.VECTOR,
})  # fmt: skip
"""Types with a collation in the metadata; enums and sets have a list of their own."""

COMPRESSED: Final = frozenset({Type.BLOB_COMPRESSED, Type.VARCHAR_COMPRESSED})

KIND_OF_TYPE: Final[dict[int, Kind]] = {
    Type.TINY: "tinyint",
    Type.SHORT: "smallint",
    Type.INT24: "mediumint",
    Type.LONG: "int",
    Type.LONGLONG: "bigint",
    Type.NEWDECIMAL: "decimal",
    Type.FLOAT: "float",
    Type.DOUBLE: "double",
    Type.BIT: "bit",
    Type.YEAR: "year",
    Type.DATE: "date",
    Type.NEWDATE: "date",
    Type.TIME: "time",
    Type.TIME2: "time",
    Type.DATETIME: "datetime",
    Type.DATETIME2: "datetime",
    Type.TIMESTAMP: "timestamp",
    Type.TIMESTAMP2: "timestamp",
    Type.STRING: "char",
    Type.VAR_STRING: "varchar",
    Type.VARCHAR: "varchar",
    Type.BLOB: "text",
    Type.BLOB_COMPRESSED: "text",
    Type.VARCHAR_COMPRESSED: "varchar",
    Type.ENUM: "enum",
    Type.SET: "set",
    Type.JSON: "json",
    Type.GEOMETRY: "geometry",
    Type.VECTOR: "vector",
}
BYTES_KINDS: Final[dict[Kind, Kind]] = {"char": "binary", "varchar": "varbinary", "text": "blob"}
"""The kind that replaces a kind of text if its collation is binary."""


class Field(Struct, frozen=True):
    column: Column
    type: int
    size: int = 0
    """Size in bytes: the maximum of a char, varchar, binary or varbinary; of the length before a text or
    blob; of an enum's number and of a set's bits."""
    hidden: bool = False
    """True if the followed table has no such column: the server adds it to the rows, or it is left out."""


_PLAIN: Final[dict[int, int]] = {
    Type.VARCHAR_COMPRESSED: Type.VARCHAR,
    Type.BLOB_COMPRESSED: Type.BLOB,
}
"""Types whose values are stored like those of others, which are read without a look at them."""
_INTEGERS: Final = {1: Type.TINY, 2: Type.SHORT, 3: Type.INT24, 4: Type.LONG, 8: Type.LONGLONG}


def passed_over(name: str, code: int, size: int, *, nullable: bool) -> Field:
    """Return a hidden field of which nothing is known but its type and the number in its metadata."""
    details: dict[str, Any] = {}
    match code:
        case Type.ENUM | Type.SET:
            code = _INTEGERS[size]
        case Type.NEWDECIMAL:
            details = {"length": size & 0xFF, "scale": size >> 8}
        case Type.BIT:
            details = {"length": size}
        case Type.TIME2 | Type.DATETIME2 | Type.TIMESTAMP2:
            details = {"scale": size}
    column = Column(name, "bigint", nullable=nullable, **details)
    return Field(column, _PLAIN.get(code, code), size, hidden=True)


class TableMap(Struct, frozen=True):
    """The contents of a Table_map event."""

    table: Table
    fields: tuple[Field, ...]
    """One for each column of the rows that follow."""


def visible(fields: Sequence[Field]) -> list[int]:
    """Return the numbers of the fields that are columns of the table."""
    return [i for i, field in enumerate(fields) if not field.hidden]


def is_hash_of_unique_key(name: str, code: int) -> bool:
    """True for the column that MariaDB adds to the rows of a table with a UNIQUE key on a TEXT or BLOB."""
    return code == Type.LONGLONG and re.fullmatch(r"DB_ROW_HASH_\d+", name) is not None


def value_bytes(code: int, size: int) -> int:
    """Return the maximum number of bytes of a value whose metadata say `size`."""
    return size - 1 if code == Type.VARCHAR_COMPRESSED else size  # it has a byte more in front
