"""Schema changes in SQLite, as part of the transaction.

SQLite can't change a column's type or a table's key: then the table is created again with the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...codec.mysql.column_defaults import NotComputable, default_for_existing_rows
from ...errors import NotReproducible
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
from ..conversion import described, keeps_text
from ..database import cant_compute, effective
from ..renames import Rename, in_order
from .table import (
    Declaration,
    Declared,
    Execute,
    columns_of,
    create_again,
    has_row,
    quoted,
    rename_table,
)
from .types import compile_encode, declared_type


class SchemaChanges:
    """Applies schema changes; `name_of` returns a table's name in the database."""

    def __init__(self, execute: Execute, name_of: Callable[[str, str], str]) -> None:
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
                have = {column.name.lower(): column for column in columns_of(self._execute, name)}
                self._alter(ddl, name, have, effective(ddl.actions, have))

    def _rename(self, pairs: Sequence[tuple[TableName, TableName]]) -> None:
        renames = [
            Rename(self._name_of(*old), self._name_of(*new), f"tidemill {number}")
            for number, (old, new) in enumerate(pairs)
        ]
        for old, new in in_order(renames):
            rename_table(self._execute, quoted(old), quoted(new))

    # --- columns and keys

    def _alter(self, ddl: Ddl, name: str, have: Mapping[str, Declared], actions: Sequence[Action]) -> None:
        changes = [action for action in actions if isinstance(action, ChangeColumn)]
        drops = [action.name.lower() for action in actions if isinstance(action, DropColumn)]
        keys = [action.columns for action in actions if isinstance(action, ChangeKey)]
        if has_row(self._execute, name):
            for change in changes:
                self._check(ddl, name, change)
        if not keys and any(have[drop].key for drop in drops if drop in have):
            raise NotReproducible(ddl.full_name, "SQLite can drop no column of a primary key")
        table = quoted(name)
        again = bool(keys) or any(_is_declared_otherwise(change, have) for change in changes)
        left_out = []
        for number, drop in enumerate(drops):
            if again:
                left_out.append(f"tidemill dropped {number}")
                self._rename_column(table, drop, left_out[-1])
            else:
                self._execute(f"ALTER TABLE {table} DROP COLUMN {quoted(drop)}")
        renames = [
            Rename(change.name, change.column.name, f"tidemill {number}")
            for number, change in enumerate(changes)
        ]
        for old, new in in_order(renames):
            self._rename_column(table, old, new)
        for action in actions:
            if isinstance(action, AddColumn):
                if action.expression and has_row(self._execute, name):
                    raise NotReproducible(ddl.full_name, cant_compute(action))
                self._add(ddl, table, action.column)
        if again:
            declarations = {change.column.name.lower(): _declaration(change.column) for change in changes}
            create_again(self._execute, name, declarations, left_out, keys[-1] if keys else None)

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
        if before.nullable and not after.nullable and has_row(self._execute, name, f"{column} IS NULL"):
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


def _declaration(column: Column) -> Declaration:
    """Return the declared type, and True if it is NOT NULL."""
    return declared_type(column), not column.nullable


def _is_declared_otherwise(change: ChangeColumn, have: Mapping[str, Declared]) -> bool:
    column = have.get(change.name.lower())
    return column is not None and _declaration(change.column) != (column.type, column.is_required)


def _literal(stored: object) -> str:
    if stored is None:
        return "NULL"
    if isinstance(stored, bytes):
        return f"X'{stored.hex()}'"
    return "'" + stored.replace("'", "''") + "'" if isinstance(stored, str) else repr(stored)
