"""The parts of a table's definition that encodings write besides `events.Table`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from ...events import (
    DISPLAY_WIDTHS,
    FLOATS,
    Column,
    Details,
    Table,
)

_PREFIXES: Final = ("tiny", "", "medium", "long")
"""Prefixes of the names of text and blob, by the bytes of their length, from 1."""


class TableIndex(Struct, frozen=True):
    name: str
    columns: tuple[int, ...]
    """Places in the table's columns."""
    unique: bool = False
    primary: bool = False


class Definition(Struct, frozen=True):
    """A table, and what encodings say about it beyond its columns."""

    table: Table
    handle_key: tuple[int, ...] = ()
    """Places of the columns by which consumers identify a row: the primary key, or a unique one."""
    indexes: tuple[TableIndex, ...] = ()
    details: Details = Details()
    """Indexes and the like, as statements told them; empty for a table that no statement told."""
    table_id: int = 0
    version: int = 0
    """Version of the definition; 0 if the source has none."""

    def key_columns(self) -> list[Column]:
        return [self.table.columns[place] for place in self.handle_key]


Describe: TypeAlias = Callable[[Table], Definition]
"""Returns a table's definition."""


def definition_of(table: Table) -> Definition:
    """Return what is known from the table alone: its primary key is the only index."""
    primary = (TableIndex("PRIMARY", table.key, unique=True, primary=True),) if table.key else ()
    return Definition(table, handle_key=table.key, indexes=primary)


def type_name(column: Column) -> str:
    """Return the type as MySQL names it, without lengths: tinyint, mediumtext, varbinary."""
    if column.kind in ("text", "blob"):
        return _PREFIXES[(column.length or 2) - 1] + column.kind
    return column.kind


def bare_type(column: Column) -> str:
    """Return the type's name with its attributes: "int unsigned zerofill"."""
    return type_name(column) + _attributes(column)


def full_type(column: Column) -> str:
    """Return the type as SHOW COLUMNS of MySQL 5.7 and TiDB prints it: "int(10) unsigned"."""
    return type_name(column) + _arguments(column) + _attributes(column)


def display_width(column: Column) -> int:
    """Return the display width of an integer column."""
    return column.width or DISPLAY_WIDTHS[column.kind][column.unsigned]


def has_digits(column: Column) -> bool:
    """Return True for FLOAT(M,D) and DOUBLE(M,D)."""
    return column.kind in FLOATS and column.length > 0


def _attributes(column: Column) -> str:
    return " unsigned" * column.unsigned + " zerofill" * column.zerofill


def _arguments(column: Column) -> str:
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            return f"({display_width(column)})"
        case "float" | "double" if has_digits(column):
            return f"({column.length},{column.scale})"
        case "decimal":
            return f"({column.length},{column.scale})"
        case "char" | "varchar" | "binary" | "varbinary" | "bit":
            return f"({column.length})"
        case "enum" | "set":
            return f"({','.join(map(_quoted, column.members))})"
        case "time" | "datetime" | "timestamp":
            return f"({column.scale})" if column.scale else ""
        case "year":
            return "(4)"
        case "vector":
            return f"({column.length})" if column.length else ""
        case "float" | "double" | "text" | "blob" | "date" | "json" | "uuid" | "inet4" | "inet6" | "geometry":
            return ""
        case _:
            assert_never(column.kind)


def _quoted(text: str) -> str:
    doubled = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"
