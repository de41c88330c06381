"""A feed's own tables in a MySQL target: its checkpoint, and the schema change in progress."""

from __future__ import annotations

import json
from typing import Any, Final

from ...events import Ddl
from . import mysql_text as text
from .mysql_session import MySqlSession, quoted
from .target import CHECKPOINT_TABLE

INTENT_TABLE: Final = "tidemill_ddl"
"""One row per feed while an auto-committing statement runs: the change that it makes."""

_FEED: Final = "feed VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY"
_TEXT: Final = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
_HOME_TABLES: Final = {
    CHECKPOINT_TABLE: f"{_FEED}, ts BIGINT NOT NULL, checkpoint {_TEXT}",
    INTENT_TABLE: f"{_FEED}, table_name {_TEXT}, query {_TEXT}, columns_before {_TEXT}",
}


class Home:
    """One feed's tables in `schema`."""

    def __init__(self, session: MySqlSession, schema: str, feed: str) -> None:
        self._session = session
        self._schema = schema
        self._feed = quoted(feed)
        self.name = text.name(schema)
        self.checkpoints = f"{self.name}.{CHECKPOINT_TABLE}"
        self._intents = f"{self.name}.{INTENT_TABLE}"
        self.is_intended = False
        """True while a schema change may have run that the checkpoint doesn't cover yet."""

    def create(self) -> None:
        """Create missing tables; the right to create is needed only then."""
        self._session.create_schema(self._schema)
        there = f"SELECT table_name FROM information_schema.tables WHERE table_schema={quoted(self._schema)}"
        known = {name for (name,) in self._session.rows(there)}
        for table, columns in _HOME_TABLES.items():
            if table not in known:
                self._session.execute(
                    f"CREATE TABLE IF NOT EXISTS {self.name}.{table} ({columns}) ENGINE=InnoDB"
                )

    def load_checkpoint(self) -> str | None:
        rows = self._session.rows(f"SELECT checkpoint FROM {self.checkpoints} WHERE feed={self._feed}")
        return rows[0][0] if rows else None

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        """Store the checkpoint and delete the intent; return False if the stored one isn't of
        `previous_ts`."""
        table, key, content = self.checkpoints, self._feed, quoted(content)
        if previous_ts is None:
            absent = f"NOT EXISTS (SELECT 1 FROM {table} WHERE feed={key})"
            saved = self._session.execute(
                f"INSERT INTO {table} SELECT {key},{ts},{content} FROM DUAL WHERE {absent}"
            )
        else:
            saved = self._session.execute(
                f"UPDATE {table} SET ts={ts},checkpoint={content} WHERE feed={key} AND ts={previous_ts}"
            )
        if self.is_intended:
            self._session.execute(f"DELETE FROM {self._intents} WHERE feed={key}")
            self.is_intended = False
        return saved == 1

    def intent(self, ddl: Ddl) -> dict[str, str] | None:
        """Return the columns before this statement, if it may have run before a crash."""
        rows: list[Any] = self._session.rows(
            f"SELECT columns_before FROM {self._intents} WHERE feed={self._feed} "
            f"AND table_name={quoted(ddl.full_name)} AND query={quoted(ddl.query)}"
        )
        return json.loads(rows[0][0]) if rows else None

    def intend(self, ddl: Ddl, columns: dict[str, str]) -> None:
        """Store the auto-committing statement and the columns before it."""
        values = ",".join(map(quoted, (ddl.full_name, ddl.query, json.dumps(columns))))
        self._session.execute(f"REPLACE INTO {self._intents} VALUES ({self._feed},{values})")
        self.is_intended = True
