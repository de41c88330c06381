"""A feed's tables beside the checkpoint in MySQL and MariaDB."""

from __future__ import annotations

from ...events import Row
from . import text as text
from .session import MySqlSession, quoted
from .tidb import MAX_ROW_BYTES


class MySqlOwnTables:
    """Tables in `schema`."""

    name_type = "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    text_type = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    table_options = " ENGINE=InnoDB"
    for_update = " FOR UPDATE"
    unix_time = "UNIX_TIMESTAMP()"

    def __init__(self, session: MySqlSession, schema: str) -> None:
        self._session = session
        self._schema = schema
        self.home = f"{text.name(schema)}."

    @property
    def max_row_bytes(self) -> int | None:
        return MAX_ROW_BYTES if self._session.is_tidb else None

    def has(self, table: str) -> bool:
        found = self._session.rows(
            "SELECT 1 FROM information_schema.tables "
            f"WHERE table_schema={quoted(self._schema)} AND table_name={quoted(table)}"
        )
        return bool(found)

    def create(self, table: str, columns: str) -> None:
        self.query(f"CREATE TABLE IF NOT EXISTS {self.home}{table} ({columns}){self.table_options}")

    def query(self, statement: str, *values: str | int | None) -> list[Row]:
        first, *rest = statement.split("?")
        return self._session.rows(
            first + "".join([_literal(value) + part for value, part in zip(values, rest, strict=True)])
        )


def _literal(value: str | int | None) -> str:
    return "NULL" if value is None else quoted(value) if isinstance(value, str) else str(value)
