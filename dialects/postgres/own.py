"""A feed's tables beside the checkpoint in PostgreSQL."""

from __future__ import annotations

from ...events import Row
from .session import PostgresSession
from .tables import CREATION_LOCK
from .text import name


class PostgresOwnTables:
    """Tables in `schema`."""

    name_type = 'text COLLATE "C"'
    text_type = "text"
    table_options = ""
    for_update = " FOR UPDATE"
    unix_time = "extract(epoch FROM clock_timestamp())::bigint"
    max_row_bytes = None

    def __init__(self, session: PostgresSession, schema: str) -> None:
        self._session = session
        self._schema = schema
        self.home = f"{name(schema, f'schema {schema}')}."

    def has(self, table: str) -> bool:
        there = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = ? AND tablename = ?"
        return bool(self.query(there, self._schema, table))

    def create(self, table: str, columns: str) -> None:
        self.query(f"SELECT pg_advisory_xact_lock({CREATION_LOCK})")
        self.query(f"CREATE TABLE IF NOT EXISTS {self.home}{table} ({columns})")

    def query(self, statement: str, *values: str | int | None) -> list[Row]:
        text = statement.replace("?", "%s")
        if statement.startswith("SELECT"):
            return self._session.rows(text, *values)
        self._session.execute(text, *values)
        return []
