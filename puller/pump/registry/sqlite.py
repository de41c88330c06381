"""An embedded registry for one machine: a SQLite file instead of etcd."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from ....errors import SourceError
from .registry import Record, RegistryUnavailable

# AUTOINCREMENT: a revision is never used again, also after the removal of its row.
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS nodes (
  revision INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, value BLOB NOT NULL)
"""


class SqliteRegistry:
    """A registry in a file, shared by the processes of one machine. Each call has its own connection."""

    def __init__(self, path: Path, timeout_seconds: float = 5.0) -> None:
        """`timeout_seconds` is the time to wait for another process's write."""
        self._path = path
        self._timeout_seconds = timeout_seconds

    def get(self, key: str) -> Record | None:
        with self._transaction() as connection:
            rows = connection.execute("SELECT value, revision FROM nodes WHERE key = ?", (key,)).fetchall()
        return Record(*rows[0]) if rows else None

    def list(self, prefix: str) -> dict[str, Record]:
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT key, value, revision FROM nodes WHERE substr(key, 1, ?) = ? ORDER BY key",
                (len(prefix), prefix),
            ).fetchall()
        return {key: Record(value, revision) for key, value, revision in rows}

    def put(self, key: str, value: bytes, revision: int) -> int | None:
        with self._transaction() as connection:
            rows = connection.execute("SELECT revision FROM nodes WHERE key = ?", (key,)).fetchall()
            if (rows[0][0] if rows else 0) != revision:
                return None
            written = connection.execute(
                "INSERT OR REPLACE INTO nodes (key, value) VALUES (?, ?)", (key, value)
            )
            return written.lastrowid

    def close(self) -> None:
        pass

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(
                sqlite3.connect(self._path, timeout=self._timeout_seconds, isolation_level=None)
            ) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_TABLE)
                yield connection
                connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise RegistryUnavailable(f"registry {self._path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise SourceError(
                f"registry {self._path}: {error}: name another file, or remove it if it is damaged"
            ) from error
