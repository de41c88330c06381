"""Tables of PostgreSQL. Schema changes are part of the transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...events import Column, Ddl, Details, Row, Table
from ..definer import TransactionalDefiner
from .changes import SchemaChanges
from .session import PostgresSession
from .tables import CREATION_LOCK, Tables
from .text import name


class PostgresDefiner(TransactionalDefiner):
    folds_names = False

    def __init__(
        self, session: PostgresSession, identity: str, tables: Tables, own_tables: PostgresOwnTables
    ) -> None:
        super().__init__(identity, own_tables)
        self._session = session
        self._tables = tables
        self._changes = SchemaChanges(session, tables)

    def name_of(self, schema: str, table: str) -> str:
        return f"{self._tables.schema_of((schema, table))}.{table}"

    def columns(self, table: Table) -> dict[str, str] | None:
        columns = self._tables.find((table.schema, table.name))
        return {column.name: column.type + (" key" if column.is_key else "") for column in columns} or None

    def _type(self, column: Column) -> str:
        return self._tables.type_of(column)

    def is_empty(self, table: Table) -> bool:
        return not self._tables.has_row((table.schema, table.name))

    def create_table(self, table: Table, details: Details | None = None, *, is_shared: bool = False) -> None:  # noqa: ARG002
        self._changes.create(table)

    def drop_table(self, table: Table) -> None:
        self._session.execute(f"DROP TABLE IF EXISTS {self._tables.qualified((table.schema, table.name))}")

    @contextmanager
    def defining(self, schema: str, table: str) -> Iterator[None]:
        name = self._tables.qualified((schema, table))
        self._session.rows("SELECT pg_advisory_xact_lock(hashtext(%s))", f"tidemill {name}")
        yield

    def _apply(self, ddl: Ddl) -> None:
        self._changes.apply(ddl)


class PostgresOwnTables:
    """Tables in `schema`."""

    name_type = 'text COLLATE "C"'
    text_type = "text"
    table_options = ""
    for_update = " FOR UPDATE"
    unix_time = "extract(epoch FROM clock_timestamp())::bigint"
    snapshot_ts = "NULL"
    max_row_bytes = None

    def __init__(self, session: PostgresSession, schema: str) -> None:
        self._session = session
        self._schema = schema
        self.home = f"{name(schema, f'schema {schema}')}."

    def has(self, table: str) -> bool:
        query = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = ? AND tablename = ?"
        return bool(self.query(query, self._schema, table))

    def create(self, table: str, columns: str) -> None:
        self.query(f"SELECT pg_advisory_xact_lock({CREATION_LOCK})")
        self.query(f"CREATE TABLE IF NOT EXISTS {self.home}{table} ({columns})")

    def query(self, statement: str, *values: str | int | None) -> list[Row]:
        text = statement.replace("?", "%s")
        if statement.startswith("SELECT"):
            return self._session.rows(text, *values)
        self._session.execute(text, *values)
        return []
