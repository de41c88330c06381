"""A connection to a SQLite file: its settings, its statements and its errors."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Final

from ...errors import Retryable, SinkError
from ..address import Address, path_of
from ..database import ObjectRejected, StatementRejected

_ATTEMPTS: Final = 10
_BUSY_SECONDS: Final = 1.0
"""Timeout of a sink's call that waits for another writer; after it the work is retried from the start."""


class SqliteSession:
    def __init__(self, address: Address, busy_seconds: float | None = None) -> None:
        """`busy_seconds` is the timeout of a call that waits for another writer. Raises ConfigError."""
        self._file = file_of(address)
        self.identity = f"sqlite:{self._file}"
        self._busy_seconds = busy_seconds or _BUSY_SECONDS
        self._connection: sqlite3.Connection | None = None

    def connect(self) -> None:
        # With isolation_level None, sqlite3 doesn't begin or commit transactions by itself.
        self._connection = sqlite3.connect(
            self._file, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        self._use_journal()
        self.execute("PRAGMA synchronous=FULL")

    def _use_journal(self) -> None:
        """Have the file use a write-ahead log. SQLite itself doesn't wait for others when it changes this."""
        for left in range(_ATTEMPTS - 1, -1, -1):
            try:
                self.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or not left:
                    raise
                self.execute("BEGIN EXCLUSIVE")  # this waits
                self.execute("COMMIT")
            else:
                return

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def connection(self) -> sqlite3.Connection:
        assert self._connection is not None
        return self._connection

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        return self.connection.execute(statement, values)

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        if not isinstance(error, sqlite3.Error):
            return None
        said = f"{self.identity}: {doing}: {error}"
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return Retryable(said)
            case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_MISMATCH | sqlite3.SQLITE_TOOBIG:
                return StatementRejected(str(error))
            case sqlite3.SQLITE_ERROR:  # no such table or column, and the like
                return ObjectRejected(str(error))
            case sqlite3.SQLITE_FULL:
                return SinkError(f"{said}: make room, then start again")
            case sqlite3.SQLITE_CANTOPEN:
                return SinkError(f"{said}: does the directory exist, with the right to write in it?")
        return SinkError(said)


def file_of(address: Address) -> Path:
    """Return the file of a URL. Raises ConfigError."""
    return path_of(address, "an SQLite sink needs a file: sqlite:///here.db or sqlite:////var/lib/here.db")
