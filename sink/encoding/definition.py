"""The parts of a table's definition that encodings write besides `events.Table`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field

from ...events import Column, Table

_INTEGER_DIGITS: Final = {
    "tinyint": (4, 3),
    "smallint": (6, 5),
    "mediumint": (9, 8),
    "int": (11, 10),
    "bigint": (20, 20),
}
"""Default display widths, signed and unsigned."""

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
    zerofill: frozenset[str] = frozenset()
    """Names of the columns that are shown with leading zeros."""
    generated: frozenset[str] = frozenset()
    """Names of the columns that the source computes from others."""
    widths: Mapping[str, int] = field(default_factory=dict)
    """Display widths of integer columns that aren't the default."""
    table_id: int = 0
    version: int = 0
    """Version of the schema; 0 if the source has none."""

    def key_columns(self) -> list[Column]:
        return [self.table.columns[place] for place in self.handle_key]


Describe: TypeAlias = Callable[[Table], Definition]
"""Returns a table's definition."""


def definition_of(table: Table) -> Definition:
    """Return what is known from the table alone: its primary key is the only index."""
    primary = (TableIndex("PRIMARY", table.key, unique=True, primary=True),) if table.key else ()
    generated = frozenset(column.name for column in table.columns if column.generated)
    return Definition(table, handle_key=table.key, indexes=primary, generated=generated)


def type_name(column: Column) -> str:
    """Return the type as MySQL names it, without lengths: tinyint, mediumtext, varbinary."""
    if column.kind in ("text", "blob"):
        return _PREFIXES[(column.length or 2) - 1] + column.kind
    return column.kind


def bare_type(definition: Definition, column: Column) -> str:
    """Return the type's name with its attributes: "int unsigned zerofill"."""
    return type_name(column) + _attributes(definition, column)


def full_type(definition: Definition, column: Column) -> str:
    """Return the type as SHOW COLUMNS of MySQL 5.7 and TiDB prints it: "int(10) unsigned"."""
    return type_name(column) + _arguments(definition, column) + _attributes(definition, column)


def display_width(definition: Definition, column: Column) -> int:
    """Return the display width of an integer column."""
    return definition.widths.get(column.name, _INTEGER_DIGITS[column.kind][column.unsigned])


def _attributes(definition: Definition, column: Column) -> str:
    zerofill = " zerofill" if column.name in definition.zerofill else ""
    return (" unsigned" if column.unsigned else "") + zerofill


def _arguments(definition: Definition, column: Column) -> str:
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            return f"({display_width(definition, column)})"
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
    return ""


def _quoted(text: str) -> str:
    doubled = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"
