"""Schema changes in SQLite, as part of the transaction.

SQLite can't change a column's type or a table's key: then the table is created again with the same rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Column,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    TableName,
    TruncateTable,
)
from ..sink import NotReproducible
from .conversion import keeps_text
from .defaults import NotComputable, default_for_existing_rows
from .renames import Rename, in_order
from .sqlite_types import compile_encode, declared_type
from .target import effective

_NEW: Final = '"tidemill new"'
"""Name of a table that is about to replace another."""


class Declared(NamedTuple):
    """A column as the database has it."""

    name: str
    type: str
    is_required: bool
    key: int
    """Place in the primary key from 1; 0 if it isn't in it."""


class SchemaChanges:
    """Applies schema changes; `name_of` returns a table's name in the database."""

    def __init__(self, execute: Callable[..., sqlite3.Cursor], name_of: Callable[[str, str], str]) -> None:
        self._execute = execute
        self._name_of = name_of

    def apply(self, ddl: Ddl) -> None:
        """Apply any action but CreateTable. Raises NotReproducible; then the transaction must be undone."""
        name = self._name_of(ddl.schema, ddl.table)
        match ddl.actions[0]:
            case DropTable():
                self._execute(f"DROP TABLE IF EXISTS {quoted(name)}")
            case TruncateTable():
                self._execute(f"DELETE FROM {quoted(name)}")
            case RenameTables(pairs):
                self._rename(pairs)
            case _:
                have = {column.name.lower(): column for column in self._columns(name)}
                self._alter(ddl, name, have, effective(ddl.actions, have))

    def _rename(self, pairs: Sequence[tuple[TableName, TableName]]) -> None:
        renames = [
            Rename(self._name_of(*old), self._name_of(*new), f"tidemill {number}")
            for number, (old, new) in enumerate(pairs)
        ]
        for old, new in in_order(renames):
            self._rename_table(quoted(old), quoted(new))

    def _rename_table(self, old: str, new: str) -> None:
        # Views that name the table stay as they are, as in the source.
        self._execute("PRAGMA legacy_alter_table=ON")
        self._execute(f"ALTER TABLE {old} RENAME TO {new}")
        self._execute("PRAGMA legacy_alter_table=OFF")

    # --- columns and keys

    def _alter(self, ddl: Ddl, name: str, have: Mapping[str, Declared], actions: Sequence[Action]) -> None:
        changes = [action for action in actions if isinstance(action, ChangeColumn)]
        drops = [action.name.lower() for action in actions if isinstance(action, DropColumn)]
        keys = [action.columns for action in actions if isinstance(action, ChangeKey)]
        if self._has_row(name):
            for change in changes:
                self._check(ddl, name, change)
        if not keys and any(have[drop].key for drop in drops if drop in have):
            raise NotReproducible(ddl.full_name, "SQLite can drop no column of a primary key")
        rebuilds = bool(keys) or any(
            _declaration(change.column)
            != (have[change.name.lower()].type, have[change.name.lower()].is_required)
            for change in changes
            if change.name.lower() in have
        )
        table = quoted(name)
        left_out = [f"tidemill dropped {number}" for number, _ in enumerate(drops)] if rebuilds else []
        if rebuilds:
            for drop, hidden in zip(drops, left_out, strict=True):
                self._rename_column(table, drop, hidden)
        else:
            for drop in drops:
                self._execute(f"ALTER TABLE {table} DROP COLUMN {quoted(drop)}")
        renames = [
            Rename(change.name, change.column.name, f"tidemill {number}")
            for number, change in enumerate(changes)
        ]
        for old, new in in_order(renames):
            self._rename_column(table, old, new)
        for action in actions:
            if isinstance(action, AddColumn):
                self._add(ddl, table, action.column)
        if rebuilds:
            self._rebuild(name, [change.column for change in changes], left_out, keys[-1] if keys else None)

    def _rename_column(self, table: str, old: str, new: str) -> None:
        self._execute(f"ALTER TABLE {table} RENAME COLUMN {quoted(old)} TO {quoted(new)}")

    def _check(self, ddl: Ddl, name: str, change: ChangeColumn) -> None:
        """Raise NotReproducible unless the stored values are those of the source after the change, too."""
        before, after = change.before, change.column
        if before is None or not keeps_text(before, after):
            types = f"{'its type' if before is None else described(before)} to {described(after)}"
            raise NotReproducible(
                ddl.full_name, f"column {change.name}: its values may not stay the same from {types}"
            )
        column = quoted(change.name)
        if before.nullable and not after.nullable and self._has_row(name, f"{column} IS NULL"):
            raise NotReproducible(
                ddl.full_name, f"column {change.name}: the value that replaced its NULLs isn't known"
            )

    def _add(self, ddl: Ddl, table: str, column: Column) -> None:
        """Add a column at the end: rows are written by column names."""
        try:
            value = default_for_existing_rows(column, ddl.epoch_seconds, ddl.utc_offset_seconds)
        except NotComputable as error:
            raise NotReproducible(ddl.full_name, str(error)) from None
        ((stored,),) = compile_encode((column,), [0])([(value,)])
        has_nul = isinstance(stored, str) and "\0" in stored  # NUL would end the statement
        null = "" if column.nullable else " NOT NULL"
        default = "''" if has_nul else _literal(stored)
        name = quoted(column.name)
        self._execute(
            f"ALTER TABLE {table} ADD COLUMN {name} {declared_type(column)}{null} DEFAULT {default}"
        )
        if has_nul:
            self._execute(f"UPDATE {table} SET {name}=?", stored)

    # --- a table that is created again

    def _rebuild(
        self, name: str, changed: Sequence[Column], left_out: Sequence[str], key: Sequence[str] | None
    ) -> None:
        """Create the table again, with the changed columns and key, its rows, its indexes and triggers."""
        changes = {column.name.lower(): _declaration(column) for column in changed}
        columns = [column for column in self._columns(name) if column.name not in left_out]
        if key is None:
            key = [column.name for column in sorted(columns, key=lambda one: one.key) if column.key]
        in_key = {column.lower() for column in key}
        lines = []
        for column in columns:
            type_, is_required = changes.get(column.name.lower(), (column.type, column.is_required))
            null = " NOT NULL" if is_required or column.name.lower() in in_key else ""
            lines.append(f"  {quoted(column.name)} {type_}{null}")
        kept = self._execute(
            "SELECT sql FROM sqlite_master WHERE tbl_name=? COLLATE NOCASE AND type IN ('index', 'trigger') "
            "AND sql IS NOT NULL",
            name,
        ).fetchall()
        names = ", ".join(quoted(column.name) for column in columns)
        table = quoted(name)
        self._execute(create_text(_NEW, lines, key))
        self._execute(f"INSERT INTO {_NEW} ({names}) SELECT {names} FROM {table}")
        self._execute(f"DROP TABLE {table}")
        self._rename_table(_NEW, table)
        for (sql,) in kept:
            self._execute(sql)

    def _columns(self, name: str) -> list[Declared]:
        rows = self._execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', name).fetchall()
        return [Declared(column, type_, bool(required), key) for column, type_, required, key in rows]

    def _has_row(self, name: str, where: str = "TRUE") -> bool:
        found = self._execute(f"SELECT 1 FROM {quoted(name)} WHERE {where} LIMIT 1")
        return found.fetchone() is not None


def create_text(table: str, lines: Sequence[str], key: Sequence[str]) -> str:
    """Return the CREATE TABLE of a quoted name, of lines that each declare a column, and of a primary key."""
    if key:
        lines = [*lines, f"  PRIMARY KEY ({', '.join(map(quoted, key))})"]
    return f"CREATE TABLE {table} (\n" + ",\n".join(lines) + "\n)"


def quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def described(column: Column) -> str:
    """Return a column's type for people."""
    size = ",".join(map(str, filter(None, (column.length, column.scale))))
    details = [
        f"({size})" if size else "",
        " unsigned" if column.unsigned else "",
        f" {column.charset or ''}",
    ]
    return f"{column.kind}{''.join(details)}".rstrip()


def _declaration(column: Column) -> tuple[str, bool]:
    """Return the declared type, and True if it is NOT NULL."""
    return declared_type(column), not column.nullable


def _literal(stored: Any) -> str:
    if stored is None:
        return "NULL"
    if isinstance(stored, bytes):
        return f"X'{stored.hex()}'"
    return "'" + stored.replace("'", "''") + "'" if isinstance(stored, str) else repr(stored)
