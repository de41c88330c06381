"""information_schema, and SHOW CREATE TABLE, of the emulated server's tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

from ...codec.mysql.column_defaults import NotComputable, default_for_existing_rows
from ...codec.mysql.tokens import NotUnderstood, literal, quoted
from ...codec.mysql.values import printed_time
from ...dialects.mysql.details import created
from ...dialects.mysql.text import type_text
from ...events import Column, Row
from .log import Vendor
from .schema import Schema
from .select import Relation
from .table import MemoryTable

_NOW: Final = re.compile(r"(?:current_timestamp|now)(?:\((\d*)\))?", re.IGNORECASE)


def relation(schema: Schema, name: str) -> Relation:
    """Return a table of information_schema, in the present. Raises NotUnderstood for one that isn't there."""
    names, rows = _TABLES.get(name.upper(), ((), None))
    if rows is None:
        raise NotUnderstood(f"information_schema.{name}")
    return Relation(names, [*rows(schema)])


def show_create_table(table: MemoryTable, vendor: Vendor) -> str:
    name = quoted(table.table.name)
    return created(table.table, table.known.details, name, is_mariadb=vendor == "MariaDB")


def _tables(schema: Schema) -> Iterator[Row]:
    for (database, name), one in schema.tables.items():
        yield database, name, "BASE TABLE", "InnoDB", len(one.rows), one.table.collation


def _columns(schema: Schema) -> Iterator[Row]:
    for (database, name), one in schema.tables.items():
        for place, column in enumerate(one.table.columns):
            is_json = column.kind == "json" and schema.vendor == "MariaDB"
            yield (
                database,
                name,
                column.name,
                place + 1,
                "longtext" if is_json else type_text(column),
                "utf8mb4" if is_json else column.charset,
                "utf8mb4_bin" if is_json else column.collation,
                "YES" if column.nullable else "NO",
                _shown_default(column) if schema.vendor == "MariaDB" else _mysql_default(column),
                _extra(one, column),
                "PRI" if place in one.table.key else "",
            )


def _shown_default(column: Column) -> str | None:
    """Return a default as MariaDB prints it: constants in the column's type, words in small letters."""
    text = column.default
    if text is None:
        return "NULL" if column.nullable else None
    if matched := _NOW.fullmatch(text):
        return f"current_timestamp({matched[1] or ''})"
    try:
        value = default_for_existing_rows(column, 0.0)
    except NotComputable:
        return text
    match value:
        case int() if column.kind != "bit":
            return str(value)
        case Decimal():
            return f"{value:f}"
        case str():
            return literal(value)
        case datetime():
            fraction = f".{value.microsecond:06}"[: column.scale + 1] * bool(column.scale)
            return f"'{value:%Y-%m-%d %H:%M:%S}{fraction}'"
        case date():
            return f"'{value:%Y-%m-%d}'"
        case timedelta():
            return f"'{printed_time(value, column.scale)}'"
    return text


def _mysql_default(column: Column) -> str | None:
    """Return a default as MySQL prints it: constants without quotes, none for NULL."""
    shown = None if column.default is None else _shown_default(column)
    if shown is None or not shown.startswith("'"):
        return shown
    return shown[1:-1].replace("''", "'")


def _extra(table: MemoryTable, column: Column) -> str:
    words = []
    if column.name.lower() == table.known.auto_increment.lower():
        words.append("auto_increment")
    if column.on_update is not None:
        words.append("on update " + _NOW.sub(r"current_timestamp(\1)", column.on_update))
    if table.known.details.of_column(column.name).invisible:
        words.append("INVISIBLE")
    return ", ".join(words)


def _statistics(schema: Schema) -> Iterator[Row]:
    for (database, name), one in schema.tables.items():
        columns = one.table.columns
        if one.known.has_primary:
            for number, place in enumerate(one.table.key, 1):
                yield database, name, 0, "PRIMARY", number, columns[place].name
        for index in one.known.details.indexes:
            for number, part in enumerate(index.parts, 1):
                yield database, name, int(index.kind != "UNIQUE"), index.name, number, part.column or None


def _checks(schema: Schema) -> Iterator[Row]:
    for (database, name), one in schema.tables.items():
        for column in one.table.columns:
            if column.kind == "json" and schema.vendor == "MariaDB":
                yield database, name, column.name, f"json_valid({quoted(column.name)})"
        for check in one.known.details.checks:
            yield database, name, check.name, check.condition


def _schemata(schema: Schema) -> Iterator[Row]:
    for name, charset in schema.databases.items():
        yield name, charset.name, charset.collation


_TABLES: Final[dict[str, tuple[tuple[str, ...], Callable[[Schema], Iterator[Row]] | None]]] = {
    "TABLES": (
        ("TABLE_SCHEMA", "TABLE_NAME", "TABLE_TYPE", "ENGINE", "TABLE_ROWS", "TABLE_COLLATION"),
        _tables,
    ),
    "COLUMNS": (
        (
            *("TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME", "ORDINAL_POSITION", "COLUMN_TYPE"),
            *("CHARACTER_SET_NAME", "COLLATION_NAME", "IS_NULLABLE", "COLUMN_DEFAULT", "EXTRA", "COLUMN_KEY"),
        ),
        _columns,
    ),
    "STATISTICS": (
        ("TABLE_SCHEMA", "TABLE_NAME", "NON_UNIQUE", "INDEX_NAME", "SEQ_IN_INDEX", "COLUMN_NAME"),
        _statistics,
    ),
    "CHECK_CONSTRAINTS": (
        ("CONSTRAINT_SCHEMA", "TABLE_NAME", "CONSTRAINT_NAME", "CHECK_CLAUSE"),
        _checks,
    ),
    "SCHEMATA": (("SCHEMA_NAME", "DEFAULT_CHARACTER_SET_NAME", "DEFAULT_COLLATION_NAME"), _schemata),
    "CHARACTER_SETS": (
        ("CHARACTER_SET_NAME", "DEFAULT_COLLATE_NAME"),
        lambda schema: iter(schema.collations.items()),
    ),
    "REFERENTIAL_CONSTRAINTS": (
        (
            *("CONSTRAINT_SCHEMA", "TABLE_NAME", "CONSTRAINT_NAME", "UNIQUE_CONSTRAINT_SCHEMA"),
            *("REFERENCED_TABLE_NAME", "DELETE_RULE", "UPDATE_RULE"),
        ),
        lambda _: iter(()),  # a table with a foreign key can't be made
    ),
    "KEY_COLUMN_USAGE": (
        (
            *("CONSTRAINT_SCHEMA", "TABLE_NAME", "CONSTRAINT_NAME"),
            *("REFERENCED_TABLE_SCHEMA", "REFERENCED_TABLE_NAME"),
        ),
        lambda _: iter(()),  # none that references another
    ),
}
"""Names of the columns, and the rows."""
