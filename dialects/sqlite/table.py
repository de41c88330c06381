"""Definitions of SQLite's tables: read, renamed, and replaced where ALTER TABLE can't change them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

Execute: TypeAlias = Callable[..., sqlite3.Cursor]
"""Runs a statement with its parameters."""

Declaration: TypeAlias = tuple[str, bool]
"""Declared type of a column, and True if it is NOT NULL."""

_NEW: Final = '"tidemill new"'
"""Name of a table that is about to replace another."""


class Declared(NamedTuple):
    """A column as the database has it."""

    name: str
    type: str
    is_required: bool
    key: int
    """Place in the primary key from 1; 0 if it isn't in it."""


def columns_of(execute: Execute, table: str) -> list[Declared]:
    rows = execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', table).fetchall()
    return [Declared(name, type_, bool(required), key) for name, type_, required, key in rows]


def has_row(execute: Execute, table: str, where: str = "TRUE") -> bool:
    """Return True if the table has a row that fulfils the condition."""
    return execute(f"SELECT 1 FROM {quoted(table)} WHERE {where} LIMIT 1").fetchone() is not None


def rename_table(execute: Execute, old: str, new: str) -> None:
    """Rename a table; both names are quoted. Views that name it stay as they are, as in the source."""
    execute("PRAGMA legacy_alter_table=ON")
    execute(f"ALTER TABLE {old} RENAME TO {new}")
    execute("PRAGMA legacy_alter_table=OFF")


def create_again(
    execute: Execute,
    table: str,
    declarations: Mapping[str, Declaration],
    left_out: Collection[str],
    key: Sequence[str] | None,
) -> None:
    """Replace a table by one with the same rows, indexes and triggers.

    `declarations` has the changed columns by name in lower case. `left_out` are columns that it loses. With
    `key` None the primary key stays.
    """
    columns = [column for column in columns_of(execute, table) if column.name not in left_out]
    if key is None:
        key = [column.name for column in sorted(columns, key=lambda one: one.key) if column.key]
    in_key = {column.lower() for column in key}
    lines = []
    for column in columns:
        name = column.name.lower()
        type_, is_required = declarations.get(name, (column.type, column.is_required))
        lines.append(column_text(column.name, type_, is_required=is_required or name in in_key))
    kept = execute(
        "SELECT sql FROM sqlite_master WHERE tbl_name=? COLLATE NOCASE AND type IN ('index', 'trigger') "
        "AND sql IS NOT NULL",
        table,
    ).fetchall()
    names = ", ".join(quoted(column.name) for column in columns)
    execute(create_text(_NEW, lines, key))
    execute(f"INSERT INTO {_NEW} ({names}) SELECT {names} FROM {quoted(table)}")
    execute(f"DROP TABLE {quoted(table)}")
    rename_table(execute, _NEW, quoted(table))
    for (sql,) in kept:
        execute(sql)


def column_text(name: str, type_: str, *, is_required: bool) -> str:
    """Return a column's line in CREATE TABLE."""
    return f"  {quoted(name)} {type_}{' NOT NULL' if is_required else ''}"


def create_text(table: str, lines: Sequence[str], key: Sequence[str]) -> str:
    """Return the CREATE TABLE of a quoted name, of lines that each declare a column, and of a primary key."""
    if key:
        lines = [*lines, f"  PRIMARY KEY ({', '.join(map(quoted, key))})"]
    return f"CREATE TABLE {table} (\n" + ",\n".join(lines) + "\n)"


def quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
