"""Tables of SQLite. Schema changes are part of the transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from ...events import Column, Ddl, Details, Row, Table
from ..definer import TransactionalDefiner
from .changes import SchemaChanges
from .session import SqliteSession
from .table import column_text, create_text, quoted
from .types import declared_type


class SqliteDefiner(TransactionalDefiner):
    """`table_name` is the template of a table's name, from {schema} and {table}."""

    folds_names = True

    def __init__(self, session: SqliteSession, table_name: str, own_tables: SqliteOwnTables) -> None:
        super().__init__(session.identity, own_tables)
        self._session = session
        self._table_name = table_name
        self._changes = SchemaChanges(session.execute, self.name_of)

    def name_of(self, schema: str, table: str) -> str:
        return self._table_name.format(schema=schema, table=table)

    def columns(self, table: Table) -> dict[str, str] | None:
        name = self.name_of(table.schema, table.name)
        rows = self._session.execute("SELECT name, type, pk FROM pragma_table_info(?)", name).fetchall()
        return {name: type_ + (" key" if key else "") for name, type_, key in rows} or None

    def _type(self, column: Column) -> str:
        return declared_type(column)

    def is_empty(self, table: Table) -> bool:
        return self._session.execute(f"SELECT 1 FROM {self.qualified(table)} LIMIT 1").fetchone() is None

    def create_table(self, table: Table, details: Details | None = None, *, is_shared: bool = False) -> None:  # noqa: ARG002
        lines = [
            column_text(column.name, declared_type(column), is_required=not column.nullable)
            for column in table.columns
        ]
        key = [table.columns[index].name for index in table.key]
        self._session.execute(create_text(self.qualified(table), lines, key))

    def drop_table(self, table: Table) -> None:
        self._session.execute(f"DROP TABLE IF EXISTS {self.qualified(table)}")

    def _apply(self, ddl: Ddl) -> None:
        self._changes.apply(ddl)

    def qualified(self, table: Table) -> str:
        return quoted(self.name_of(table.schema, table.name))


class SqliteOwnTables:
    home = ""
    name_type = "TEXT"
    text_type = "TEXT"
    table_options = ""
    for_update = ""
    """There is one writer at a time."""
    unix_time = "CAST(strftime('%s', 'now') AS INTEGER)"
    snapshot_ts = "NULL"
    max_row_bytes = None

    def __init__(self, execute: Callable[..., sqlite3.Cursor]) -> None:
        self._execute = execute

    def has(self, table: str) -> bool:
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", table))

    def create(self, table: str, columns: str) -> None:
        self.query(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")

    def query(self, statement: str, *values: str | int | None) -> list[Row]:
        return self._execute(statement, *values).fetchall()
