"""A connection: its statements, its names and literals, and its errors."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from tidemill.dialects.database import StatementRejected
from tidemill.errors import Retryable, SinkError
from tidemill.events import Table

BUSY_SECONDS = 1.0


class Session:
    def __init__(self, file: Path, separator: str, busy_seconds: float | None = None) -> None:
        self.identity = f"typeless:{file}"
        self.separator = separator
        self._file = file
        self._busy_seconds = busy_seconds or BUSY_SECONDS
        self._connection: sqlite3.Connection | None = None

    def connect(self) -> None:
        self._connection = sqlite3.connect(
            self._file, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        self.execute("PRAGMA synchronous=FULL")

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        assert self._connection is not None
        return self._connection.execute(statement, values)

    def rows(self, statement: str, *values: Any) -> list[Any]:
        return self.execute(statement, *values).fetchall()

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        if not isinstance(error, sqlite3.Error):
            return None
        said = f"{self.identity}: {doing}: {error}"
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return Retryable(said)
            case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_TOOBIG:
                return StatementRejected(str(error))
        return SinkError(said)

    def name_of(self, schema: str, table: str) -> str:
        """Return the name here of a source's table."""
        return f"{schema}{self.separator}{table}"

    def table(self, table: Table) -> str:
        """Return the quoted name here of a source's table."""
        return quoted(self.name_of(table.schema, table.name))

    def columns(self, name: str) -> list[str]:
        """Return the names of a table's columns, in order; none if there is no such table."""
        return [column for (column,) in self.rows("SELECT name FROM pragma_table_info(?)", name)]

    def key(self, name: str) -> list[str]:
        """Return the columns of a table's key, in order."""
        index = "SELECT name FROM pragma_index_list(?) WHERE [unique]"
        return [
            column
            for (index_name,) in self.rows(index, name)
            for (column,) in self.rows("SELECT name FROM pragma_index_info(?)", index_name)
        ]


def quoted(identifier: str) -> str:
    return "`" + identifier.replace("`", "``") + "`"


def literal(value: Any) -> str:
    """Return a stored value as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        if value.isprintable():
            return "'" + value.replace("'", "''") + "'"
        return f"CAST(x'{value.encode().hex()}' AS TEXT)"
    return repr(value)
