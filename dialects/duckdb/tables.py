"""Definitions of DuckDB's tables: read, created, moved, and replaced where ALTER TABLE can't change them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from ...errors import SinkError
from ...events import Column, Table, TableName
from .session import STAGED, DuckDbSession
from .types import declared_type

_HERE: Final = (
    "database_name=current_catalog() AND lower(schema_name)=lower(?) AND lower(table_name)=lower(?)"
)
_NEW: Final = "tidemill new"
"""Name of a table that is about to replace another."""


class Declared(NamedTuple):
    """A column as the database has it, or is to have it."""

    name: str
    type: str
    is_required: bool


class Tables:
    def __init__(self, session: DuckDbSession, schema: str, *, dates_as_text: bool) -> None:
        """`schema` is that of all tables; empty: each table's own."""
        self._session = session
        self._schema = schema
        self.dates_as_text = dates_as_text

    def place_of(self, table: TableName) -> TableName:
        """Return the schema and name here of a source's table."""
        return self._schema or table[0], table[1]

    def qualified(self, place: TableName) -> str:
        """Return a name that can't be taken for another database's."""
        return ".".join(map(quoted, (self._session.catalog, *place)))

    def declared(self, column: Column) -> Declared:
        type_ = declared_type(column, dates_as_text=self.dates_as_text)
        return Declared(column.name, type_, not column.nullable)

    def columns(self, place: TableName) -> list[Declared]:
        rows = self._session.rows(
            f"SELECT column_name, data_type, NOT is_nullable FROM duckdb_columns() WHERE {_HERE} "
            "ORDER BY column_index",
            *place,
        )
        return [Declared(*row) for row in rows]

    def key(self, place: TableName) -> list[str]:
        """Return the columns of the primary key, in order."""
        rows = self._session.rows(
            f"SELECT constraint_column_names FROM duckdb_constraints() WHERE {_HERE} "
            "AND constraint_type='PRIMARY KEY'",
            *place,
        )
        return list(rows[0][0]) if rows else []

    def has_row(self, place: TableName, where: str = "TRUE") -> bool:
        return bool(self._session.rows(f"SELECT 1 FROM {self.qualified(place)} WHERE {where} LIMIT 1"))

    def create(self, table: Table) -> None:
        columns = [self.declared(column) for column in table.columns]
        place = self.place_of((table.schema, table.name))
        self._create(place, columns, [table.columns[index].name for index in table.key])

    def _create(self, place: TableName, columns: Sequence[Declared], key: Sequence[str]) -> None:
        if problems := unindexed([one.name for one in columns if one.type == "INTERVAL" and one.name in key]):
            raise SinkError(f"{self._session.path}: table {'.'.join(place)}: {problems}")
        schema = ".".join(map(quoted, (self._session.catalog, place[0])))
        self._session.change(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        lines = [f"  {quoted(one.name)} {one.type}{' NOT NULL' * one.is_required}" for one in columns]
        if key:
            lines.append(f"  PRIMARY KEY ({', '.join(map(quoted, key))})")
        self._session.change(f"CREATE TABLE {self.qualified(place)} (\n" + ",\n".join(lines) + "\n)")

    def rename(self, old: TableName, new: TableName) -> None:
        if old[0].lower() == new[0].lower():
            self._session.change(f"ALTER TABLE {self.qualified(old)} RENAME TO {quoted(new[1])}")
            return
        columns = self.columns(old)
        self.replace(old, new, [(one, quoted(one.name)) for one in columns], self.key(old))

    def replace(
        self,
        old: TableName,
        new: TableName,
        columns: Sequence[tuple[Declared, str]],
        key: Sequence[str],
        data: pa.Table | None = None,
    ) -> None:
        """Replace a table by one with the same rows.

        `columns` are those of the new table, each with its value: an expression over the old table and the
        row of `data`. Raises SinkError if the table has indexes, which DuckDB can't keep.
        """
        rows = self._session.rows(f"SELECT index_name FROM duckdb_indexes() WHERE {_HERE}", *old)
        if rows:
            names = ", ".join(name for (name,) in rows)
            raise SinkError(
                f"{self._session.path}: table {'.'.join(old)} has indexes of its own ({names}), which DuckDB "
                "can't keep: drop them, and create them again after the change"
            )
        passing = new[0], _NEW
        self._create(passing, [one for one, _ in columns], key)
        names = ", ".join(quoted(one.name) for one, _ in columns)
        values = ", ".join(value for _, value in columns)
        staged = "" if data is None else f", {STAGED} AS r"
        self._session.change(
            f"INSERT INTO {self.qualified(passing)} ({names}) SELECT {values} FROM {self.qualified(old)} AS t"
            f"{staged}",
            data=data,
        )
        self._session.change(f"DROP TABLE {self.qualified(old)}")
        self._session.change(f"ALTER TABLE {self.qualified(passing)} RENAME TO {quoted(new[1])}")


def unindexed(columns: Sequence[str]) -> str:
    """Return why columns of INTERVAL can't be in a key; empty without such columns."""
    if not columns:
        return ""
    return f"column {columns[0]}: DuckDB has no keys of INTERVAL, its type for TIME: leave the table out"


def quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
