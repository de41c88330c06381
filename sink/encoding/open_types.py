"""MySQL's type bytes and TiCDC's flags of columns."""

from __future__ import annotations

from enum import IntFlag
from typing import Final

from ...codec.tidb.column_type import Type
from ...events import WITH_CHARSET, Column, Kind
from .definition import Definition

_TYPES: Final[dict[Kind, int]] = {
    "tinyint": Type.TINY, "smallint": Type.SHORT, "mediumint": Type.INT24, "int": Type.LONG,
    "bigint": Type.LONGLONG, "float": Type.FLOAT, "double": Type.DOUBLE, "decimal": Type.NEWDECIMAL,
    "bit": Type.BIT, "char": Type.STRING, "binary": Type.STRING, "varchar": Type.VARCHAR,
    "varbinary": Type.VARCHAR, "date": Type.DATE, "time": Type.TIME, "datetime": Type.DATETIME,
    "timestamp": Type.TIMESTAMP, "year": Type.YEAR, "enum": Type.ENUM, "set": Type.SET, "json": Type.JSON,
    "vector": 225,
}  # fmt: skip
_LOBS: Final = (Type.TINY_BLOB, Type.BLOB, Type.MEDIUM_BLOB, Type.LONG_BLOB)
"""By the bytes of their length, from 1."""


class OpenFlag(IntFlag):
    BINARY = 1
    HANDLE_KEY = 2
    GENERATED = 4
    PRIMARY = 8
    UNIQUE = 16
    MULTIPLE = 32
    NULLABLE = 64
    UNSIGNED = 128


def type_byte(column: Column) -> int | None:
    """Return the number of the type; None if TiDB has no such type."""
    if column.kind in ("text", "blob"):
        return _LOBS[(column.length or 2) - 1]
    return _TYPES.get(column.kind)


def flags(definition: Definition, place: int) -> int:
    column = definition.table.columns[place]
    flag = OpenFlag(0)
    if column.kind not in WITH_CHARSET:
        flag |= OpenFlag.BINARY
    if place in definition.handle_key:
        flag |= OpenFlag.HANDLE_KEY
    if column.generated:
        flag |= OpenFlag.GENERATED
    for index in definition.indexes:
        if place in index.columns:
            flag |= (
                OpenFlag.PRIMARY if index.primary else OpenFlag.UNIQUE if index.unique else OpenFlag.MULTIPLE
            )
            if len(index.columns) > 1:
                flag |= OpenFlag.MULTIPLE
    if column.nullable:
        flag |= OpenFlag.NULLABLE
    if column.unsigned or column.kind in ("bit", "year"):
        flag |= OpenFlag.UNSIGNED
    return int(flag)
