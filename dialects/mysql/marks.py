"""Marks of TiDB-Binlog's loopback control: each transaction changes a row of its channel."""

from __future__ import annotations

from ..options import MARK_SCHEMA, MARK_TABLE
from .session import MySqlSession

_TABLE = f"`{MARK_SCHEMA}`.`{MARK_TABLE}`"
_COLUMNS = (
    "id BIGINT NOT NULL, channel_id BIGINT NOT NULL DEFAULT 0, val BIGINT DEFAULT 0, "
    "channel_info VARCHAR(64), PRIMARY KEY (id, channel_id)"
)
_ID = 1


class Marks:
    """The row of one channel."""

    def __init__(self, session: MySqlSession, channel: int) -> None:
        self._session = session
        self._channel = channel

    def create(self) -> None:
        """Create the table and the row if they are missing."""
        session = self._session
        session.create_schema(MARK_SCHEMA)
        session.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} ({_COLUMNS}) ENGINE=InnoDB")
        session.execute(f"INSERT IGNORE INTO {_TABLE} (id, channel_id) VALUES ({_ID}, {self._channel})")

    def mark(self) -> None:
        """Mark the open SQL transaction."""
        self._session.execute(
            f"UPDATE {_TABLE} SET val = val + 1 WHERE id = {_ID} AND channel_id = {self._channel}"
        )
