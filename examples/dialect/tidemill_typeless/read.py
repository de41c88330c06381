"""The tables of a feed, read to compare and repair them: rows as they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tidemill.dialects.database import CHECKPOINT_TABLE
from tidemill.dialects.sql_reader import SqlReader, explained, fetched
from tidemill.dialects.sqlite.types import compile_encode, from_sqlite
from tidemill.events import Column, Kind, Row, Table, TableName

from .entry import TypelessOptions
from .session import Session, literal, quoted


class TypelessReader(SqlReader):
    sorted_kinds = frozenset[Kind](
        {"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "date"}
    )
    begin_writing = "BEGIN IMMEDIATE"

    def __init__(self, file: Path, options: TypelessOptions, feed: str) -> None:
        self._session = session = Session(file, options.separator, busy_seconds=10)
        super().__init__(session.identity, feed)
        with explained(session):
            session.connect()

    def close(self) -> None:
        self._session.close()

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with explained(self._session):
            return self._session.rows(sql, *values)

    def _run(self, statement: str) -> int:
        with explained(self._session):
            return self._session.execute(statement).rowcount

    def _pages(self, query: str) -> Iterator[list[Any]]:
        with explained(self._session):
            yield from fetched(self._session.execute(query))

    def _load_checkpoint(self) -> str | None:
        if not self._session.columns(CHECKPOINT_TABLE):
            return None
        rows = self._rows(f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?", self._feed)
        return rows[0][0] if rows else None

    # --- tables

    def _qualified(self, table: Table) -> str:
        return self._session.table(table)

    def _name(self, identifier: str) -> str:
        return quoted(identifier)

    def names(self) -> list[TableName]:
        names = [
            name.partition(self._session.separator)
            for (name,) in self._rows("SELECT name FROM sqlite_master")
        ]
        return [(schema, table) for schema, _, table in names if table and not table.endswith(" key")]

    def _columns(self, table: Table) -> dict[str, str]:
        return dict.fromkeys(self._session.columns(self._session.name_of(table.schema, table.name)), "")

    def _types(self, table: Table) -> list[str]:
        return [""] * len(table.columns)

    # --- values

    def stored(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        return compile_encode(table.columns, range(len(table.columns)))(rows)

    def _source_form(self, column: Column) -> Callable[[Any], Any]:
        return partial(from_sqlite, column)

    def _literal(self, column: Column, value: Any) -> str:
        return literal(value)

    def _equals(self, column: Column, value: Any) -> str:
        return f"{quoted(column.name)} IS {literal(value)}"
