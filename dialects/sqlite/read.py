"""The tables of a feed in SQLite, read to compare and repair them.

Rows are compared as they are stored (docs/reference/sqlite.md#types)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ...errors import Retryable, SinkError
from ...events import Checkpoint, Column, Kind, Row, Table, TableName
from ..address import Address
from ..database import CHECKPOINT_TABLE
from ..options import SqliteOptions
from ..sql_reader import SqlReader, fetched
from .session import file_of
from .table import quoted
from .types import compile_encode, declared_type, from_sqlite

_BUSY_SECONDS: Final = 10.0


class SqliteReader(SqlReader):
    """Opens the file for reading only, until a repair is applied."""

    sorted_kinds = frozenset[Kind]({
        "tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year", "float", "double",
        "binary", "varbinary", "date", "datetime", "timestamp",
    })  # fmt: skip
    begin_writing = "BEGIN IMMEDIATE"

    def __init__(self, file: Path, table_name: str, feed: str) -> None:
        super().__init__(f"sqlite:{file.absolute().resolve()}", feed)
        self._file = file
        self._table_name = table_name
        self._connection: sqlite3.Connection | None = None
        self._writes = False

    @property
    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open("ro")
        return self._connection

    def _open(self, mode: str) -> sqlite3.Connection:
        with self._explained():
            connection = sqlite3.connect(
                f"file:{quote(str(self._file))}?mode={mode}",
                uri=True,
                isolation_level=None,
                timeout=_BUSY_SECONDS,
                check_same_thread=False,
            )
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        return connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            said = f"{self.identity}: {error}"
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (
                sqlite3.SQLITE_BUSY,
                sqlite3.SQLITE_LOCKED,
            )
            raise (Retryable(said) if busy else SinkError(said)) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _rows(self, sql: str, *values: Any) -> list[Row]:
        with self._explained():
            return self._opened.execute(sql, values).fetchall()

    def _run(self, statement: str) -> int:
        with self._explained():
            return self._opened.execute(statement).rowcount

    def _pages(self, query: str) -> Iterator[list[Row]]:
        with self._explained():
            yield from fetched(self._opened.execute(query))

    def _begin_writing(self) -> None:
        if not self._writes:
            self.close()
            self._connection, self._writes = self._open("rw"), True
        super()._begin_writing()

    def _load_checkpoint(self) -> str | None:
        if not self._rows("SELECT 1 FROM sqlite_master WHERE name=?", CHECKPOINT_TABLE):
            return None
        rows = self._rows(f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?", self._feed)
        return rows[0][0] if rows else None

    def checkpoint(self) -> Checkpoint | None:
        is_unused = not self._file.with_name(f"{self._file.name}-wal").exists()
        if self._connection is not None or not is_unused:
            return super().checkpoint()
        # Else SQLite creates files beside it, even for reading.
        self._connection = self._open("ro&immutable=1")
        try:
            return super().checkpoint()
        finally:
            self.close()

    # --- tables

    def _own_name(self, table: Table) -> str:
        return self._table_name.format(schema=table.schema, table=table.name)

    def _qualified(self, table: Table) -> str:
        return quoted(self._own_name(table))

    def _name(self, identifier: str) -> str:
        return quoted(identifier)

    def names(self) -> list[TableName]:
        if self._table_name != "{schema}.{table}":
            return []
        rows = self._rows("SELECT name FROM sqlite_master WHERE type='table'")
        return [(match[1], match[2]) for (name,) in rows if (match := re.fullmatch(r"([^.]+)\.(.+)", name))]

    def _columns(self, table: Table) -> dict[str, str]:
        return dict(self._rows("SELECT name, type FROM pragma_table_info(?)", self._own_name(table)))

    def _types(self, table: Table) -> list[str]:
        return [declared_type(column) for column in table.columns]

    # --- values

    def stored(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        return compile_encode(table.columns, range(len(table.columns)))(rows)

    def _source_form(self, column: Column) -> Callable[[object], object]:
        return partial(from_sqlite, column)

    def _value(self, column: Column) -> str:
        name = quoted(column.name)
        if declared_type(column):
            return name
        # A column without a type may hold a number that isn't an integer, and Python finds 1.0 equal to 1.
        return f"CASE typeof({name}) WHEN 'real' THEN 'real ' || {name} ELSE {name} END"

    def _equals(self, column: Column, value: object) -> str:
        return f"{quoted(column.name)} IS {literal(value)}"

    def _literal(self, column: Column, value: object) -> str:  # noqa: ARG002
        return literal(value)


def opened(address: Address, options: SqliteOptions, feed: str) -> SqliteReader | None:
    """Return a reader of the URL's file; None if there is no file."""
    file = file_of(address)
    return SqliteReader(file, options.table_name, feed) if file.exists() else None


def literal(value: object) -> str:
    """Return a stored value as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if not isinstance(value, str):
        return repr(value)
    if value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return f"CAST(X'{value.encode('utf-8', 'surrogateescape').hex()}' AS TEXT)"
