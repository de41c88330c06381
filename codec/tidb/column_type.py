"""Numbers and flags of column types. Source: MySQL's field_types.h, TiDB's parser/mysql package."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

from ...events import Kind
from .table_info import ColumnInfo


class Type(IntEnum):
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
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254


class ColumnFlag(IntFlag):
    NOT_NULL = 1
    PRI_KEY = 2
    UNSIGNED = 32
    ZEROFILL = 64
    BINARY = 128
    AUTO_INCREMENT = 512
    ON_UPDATE_NOW = 8192


KINDS: Final[dict[int, Kind]] = {
    Type.TINY: "tinyint",
    Type.SHORT: "smallint",
    Type.INT24: "mediumint",
    Type.LONG: "int",
    Type.LONGLONG: "bigint",
    Type.FLOAT: "float",
    Type.DOUBLE: "double",
    Type.NEWDECIMAL: "decimal",
    Type.TIMESTAMP: "timestamp",
    Type.DATE: "date",
    Type.NEWDATE: "date",
    Type.DATETIME: "datetime",
    Type.TIME: "time",
    Type.YEAR: "year",
    Type.BIT: "bit",
    Type.JSON: "json",
    Type.ENUM: "enum",
    Type.SET: "set",
}
"""Kinds of the types whose kind doesn't depend on the charset."""

_STRINGS: Final[dict[int, tuple[Kind, Kind]]] = {
    Type.STRING: ("char", "binary"),
    Type.VARCHAR: ("varchar", "varbinary"),
    Type.VAR_STRING: ("varchar", "varbinary"),
    Type.TINY_BLOB: ("text", "blob"),
    Type.BLOB: ("text", "blob"),
    Type.MEDIUM_BLOB: ("text", "blob"),
    Type.LONG_BLOB: ("text", "blob"),
}
"""Kinds of text and bytes."""

LENGTH_BYTES: Final[dict[int, int]] = {
    Type.TINY_BLOB: 1,
    Type.BLOB: 2,
    Type.MEDIUM_BLOB: 3,
    Type.LONG_BLOB: 4,
}
"""Bytes of the length prefix of a text or blob in MySQL."""

_BIN_COLLATIONS: Final = frozenset({"ascii_bin", "latin1_bin", "utf8_bin", "utf8mb4_bin"})


def kind_of(column: ColumnInfo) -> Kind:
    """Return a column's kind. Raises ValueError for an unknown type."""
    kind = KINDS.get(column.type)
    if kind is None and column.type in _STRINGS:
        kind = _STRINGS[column.type][column.charset == "binary"]
    if kind is None:
        raise ValueError(f"columns of type number {column.type} aren't known")
    return kind


def is_unsigned(column: ColumnInfo) -> bool:
    return bool(column.flags & ColumnFlag.UNSIGNED)


def key_keeps_text(column: ColumnInfo) -> bool:
    """True if a clustered key contains the column itself, not its sort key (with new collations on).

    The key lacks the trailing spaces of a VARCHAR in a _bin collation; a CHAR has none.
    """
    if column.type not in _STRINGS or column.charset == "binary" or column.collation == "utf8mb4_0900_bin":
        return True
    return column.collation in _BIN_COLLATIONS and column.type not in (Type.VARCHAR, Type.VAR_STRING)
