"""The source's tables in a PostgreSQL target: their names, columns and keys."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...events import Column, TableName
from .session import PostgresSession
from .text import fits, name
from .types import declared_type

CREATION_LOCK: Final = 0x7469646D696C6C
"""Advisory lock of whoever creates schemas or checkpoint tables: two at once would fail."""

_COLUMNS: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attnum = ANY(k.conkey), k.conname
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_constraint AS k ON k.conrelid = c.oid AND k.contype = 'p'
WHERE n.nspname = %s AND c.relname = %s ORDER BY a.attnum
"""
_TRIGGERS: Final = """
SELECT 1 FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND NOT t.tgisinternal LIMIT 1
"""


class TargetColumn(NamedTuple):
    """A column as the database has it."""

    name: str
    type: str
    is_required: bool
    is_key: bool
    constraint: str
    """Name of the table's primary key; empty if it has none."""


class Tables:
    """Looks tables up. `schema` is the target schema of all tables; empty: each has its own."""

    def __init__(self, session: PostgresSession, schema: str, *, dates_as_text: bool) -> None:
        self._session = session
        self._schema = schema
        self.dates_as_text = dates_as_text

    def schema_of(self, table: TableName) -> str:
        return self._schema or table[0]

    def qualified(self, table: TableName) -> str:
        """Return the quoted name. Raises SinkError if it is too long."""
        of = f"table {'.'.join(table)}"
        return f"{name(self.schema_of(table), of)}.{name(table[1], of)}"

    def type_of(self, column: Column) -> str:
        return declared_type(column, dates_as_text=self.dates_as_text)

    def find(self, table: TableName) -> list[TargetColumn]:
        """Return the table's columns, in order; none if it isn't there."""
        schema, own = self.schema_of(table), table[1]
        if not fits(schema) or not fits(own):
            return []
        rows = self._session.rows(_COLUMNS, schema, own)
        return [
            TargetColumn(column, type_, required, bool(key), constraint or "")
            for column, type_, required, key, constraint in rows
        ]

    def has_row(self, table: TableName, where: str = "true") -> bool:
        """Return True if the table has a row that fulfils the condition."""
        return bool(self._session.rows(f"SELECT 1 FROM {self.qualified(table)} WHERE {where} LIMIT 1"))

    def has_trigger(self, table: TableName) -> bool:
        return bool(self._session.rows(_TRIGGERS, self.schema_of(table), table[1]))

    def create_schema(self, schema: str) -> None:
        """Create the schema if it is missing; the right to create is needed only then.

        In a transaction, whose end releases a lock.
        """
        query = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s"
        if not self._session.rows(query, schema):
            self._session.rows(f"SELECT pg_advisory_xact_lock({CREATION_LOCK})")
            self._session.execute(f"CREATE SCHEMA IF NOT EXISTS {name(schema, f'schema {schema}')}")
