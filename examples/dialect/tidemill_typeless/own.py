"""The feed's tables beside its checkpoint."""

from __future__ import annotations

from tidemill.events import Row

from .session import Session


class TypelessOwnTables:
    home = ""
    name_type = text_type = "TEXT"
    table_options = ""
    for_update = ""
    unix_time = "CAST(strftime('%s', 'now') AS INTEGER)"
    snapshot_ts = "NULL"
    max_row_bytes = None

    def __init__(self, session: Session) -> None:
        self._session = session

    def has(self, table: str) -> bool:
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", table))

    def create(self, table: str, columns: str) -> None:
        self.query(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")

    def query(self, statement: str, *values: str | int | None) -> list[Row]:
        return self._session.rows(statement, *values)
