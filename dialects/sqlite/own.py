"""A feed's tables beside the checkpoint in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from ...events import Row


class SqliteOwnTables:
    home = ""
    name_type = "TEXT"
    text_type = "TEXT"
    table_options = ""
    for_update = ""
    """There is one writer at a time."""
    unix_time = "CAST(strftime('%s', 'now') AS INTEGER)"
    max_row_bytes = None

    def __init__(self, execute: Callable[..., sqlite3.Cursor]) -> None:
        self._execute = execute

    def has(self, table: str) -> bool:
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", table))

    def create(self, table: str, columns: str) -> None:
        self.query(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")

    def query(self, statement: str, *values: str | int | None) -> list[Row]:
        return self._execute(statement, *values).fetchall()
