"""A connection to a SQLite file: its settings, its statements and its errors."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from ...errors import Retryable, SinkError
from ..address import path_of
from ..database import StatementRejected

_ATTEMPTS: Final = 10
_BUSY_SECONDS: Final = 1.0
"""Timeout of a sink's call that waits for another writer; after it the work is retried from the start."""


class SqliteSession:
    def __init__(self, url: URL, busy_seconds: float | None = None) -> None:
        """`busy_seconds` is the timeout of a call that waits for another writer. Raises ConfigError."""
        self.identity = f"sqlite:{file_of(url)}"
        self._engine = create_engine(
            url,
            poolclass=NullPool,
            # With isolation_level None, sqlite3 doesn't begin or commit transactions by itself.
            connect_args={
                "isolation_level": None,
                "timeout": busy_seconds or _BUSY_SECONDS,
                "check_same_thread": False,
            },
        )
        self._connection: sqlite3.Connection | None = None

    def connect(self) -> None:
        pooled = self._engine.raw_connection()
        self._connection = pooled.driver_connection
        pooled.detach()
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
        if isinstance(error, DBAPIError) and isinstance(error.orig, Exception):
            error = error.orig
        if not isinstance(error, sqlite3.Error):
            return None
        said = f"{self.identity}: {doing}: {error}"
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return Retryable(said)
            case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_MISMATCH | sqlite3.SQLITE_TOOBIG:
                return StatementRejected(str(error))
            case sqlite3.SQLITE_FULL:
                return SinkError(f"{said}: make room, then start again")
            case sqlite3.SQLITE_CANTOPEN:
                return SinkError(f"{said}: does the directory exist, with the right to write in it?")
        return SinkError(said)


def file_of(url: URL) -> Path:
    """Return the file of a URL. Raises ConfigError."""
    return path_of(url, "an SQLite sink needs a file: sqlite:///here.db or sqlite:////var/lib/here.db")
