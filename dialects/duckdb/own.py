"""A feed's tables beside the checkpoint in DuckDB."""

from __future__ import annotations

from ...events import Row
from .session import DuckDbSession


class DuckDbOwnTables:
    home = ""
    name_type = "VARCHAR"
    text_type = "VARCHAR"
    table_options = ""
    for_update = ""
    """There is one writing process at a time."""
    unix_time = "CAST(floor(epoch(now())) AS BIGINT)"
    max_row_bytes = None

    def __init__(self, session: DuckDbSession) -> None:
        self._session = session

    def has(self, table: str) -> bool:
        found = "SELECT 1 FROM duckdb_tables() WHERE database_name=current_catalog() AND schema_name='main'"
        return bool(self._session.rows(f"{found} AND table_name=?", table))

    def create(self, table: str, columns: str) -> None:
        self.query(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")

    def query(self, statement: str, *values: str | int | None) -> list[Row]:
        if statement.startswith("SELECT"):
            return list(self._session.rows(statement, *values))
        self._session.change(statement, *values)
        return []
