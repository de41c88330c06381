"""Records of transactions that parallel workers applied after the checkpoint, in a MySQL target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...events import Ts
from ..applied import APPLIED_TABLE, Applied, parse_applied
from ..worker import Start
from .session import MySqlSession, quoted

APPLIED_COLUMNS: Final = (
    "feed VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, first_ts BIGINT NOT NULL, "
    "applied LONGTEXT CHARACTER SET ascii NOT NULL, PRIMARY KEY (feed, first_ts)"
)


class AppliedRows:
    """One feed's rows; `schema` is the quoted name of its home."""

    def __init__(self, session: MySqlSession, schema: str, checkpoints: str, feed: str) -> None:
        self._session = session
        self._table = f"{schema}.{APPLIED_TABLE}"
        self._checkpoints = checkpoints
        self._feed = quoted(feed)

    def load(self) -> list[Applied]:
        """Return all records. A SQL transaction of a lost connection that may add one has ended then: it
        locks its record or the checkpoint's row before it changes anything else."""
        self._session.execute("START TRANSACTION")
        self._session.rows(f"SELECT * FROM {self._checkpoints} WHERE feed={self._feed} FOR UPDATE")
        records = self.read(" FOR UPDATE")
        self._session.execute("COMMIT")
        return records

    def read(self, lock: str = "") -> list[Applied]:
        """Return the records that the session sees."""
        rows = self._session.rows(f"SELECT applied FROM {self._table} WHERE feed={self._feed}{lock}")
        return [parse_applied(text, self._table) for (text,) in rows]

    def forget(self, firsts: Sequence[Ts]) -> None:
        for statement in self._deletion(firsts):
            self._session.execute(statement)

    def statements(self, start: Start) -> Iterator[tuple[str, int]]:
        """Yield the statements for the beginning of a worker's SQL transaction, each with its row count."""
        if start.applied is not None:
            values = f"{self._feed},{start.applied.first},'{start.applied.text()}'"
            yield f"INSERT INTO {self._table} VALUES ({values})", 1
        if start.advance is not None:
            previous, ts, content = start.advance
            yield (
                f"UPDATE {self._checkpoints} SET ts={ts},checkpoint={quoted(content)} "
                f"WHERE feed={self._feed} AND ts={previous}",
                1,
            )
        for statement in self._deletion(start.forget):
            yield statement, len(start.forget)

    def _deletion(self, firsts: Sequence[Ts]) -> Iterator[str]:
        if firsts:
            listed = ",".join(map(str, firsts))
            yield f"DELETE FROM {self._table} WHERE feed={self._feed} AND first_ts IN ({listed})"
