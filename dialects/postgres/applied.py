"""Records of transactions that parallel workers applied after the checkpoint, in a PostgreSQL target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from ...events import Ts
from ..applied import APPLIED_TABLE, Applied, parse_applied
from ..statement import ANY, Statement
from ..worker import Start
from .session import PostgresSession
from .text import quoted

APPLIED_COLUMNS: Final = (
    "feed text NOT NULL, first_ts bigint NOT NULL, applied text NOT NULL, PRIMARY KEY (feed, first_ts)"
)


class AppliedRows:
    """One feed's rows; `schema` is the quoted name of its home.

    Each SQL transaction of a worker shares an advisory lock of the feed from its first statement on.
    """

    def __init__(self, session: PostgresSession, schema: str, checkpoints: str, feed: str) -> None:
        self._session = session
        self._table = f"{schema}.{APPLIED_TABLE}"
        self._checkpoints = checkpoints
        self._feed = quoted(feed)
        digest = sha256(f"tidemill {self._table} {feed}".encode()).digest()
        self._lock = int.from_bytes(digest[:8], "big", signed=True)

    def load(self) -> list[Applied]:
        """Return all records, once no SQL transaction of a lost connection is open that may add one."""
        self._session.defer("BEGIN")
        self._session.rows(f"SELECT pg_advisory_xact_lock({self._lock})")
        records = self.read()
        self._session.commit()
        return records

    def read(self) -> list[Applied]:
        """Return the records that the session sees."""
        rows = self._session.rows(f"SELECT applied FROM {self._table} WHERE feed={self._feed}")
        return [parse_applied(text, self._table) for (text,) in rows]

    def forget(self, firsts: Sequence[Ts]) -> None:
        for statement in self._deletion(firsts):
            self._session.execute(statement.text)

    def statements(self, start: Start) -> Iterator[Statement]:
        """Yield the statements for the beginning of a worker's SQL transaction."""
        yield Statement(f"SELECT pg_advisory_xact_lock_shared({self._lock})", ANY)
        if start.applied is not None:
            values = f"{self._feed},{start.applied.first},'{start.applied.text()}'"
            yield Statement(f"INSERT INTO {self._table} VALUES ({values})", 1)
        if start.advance is not None:
            previous, ts, content = start.advance
            yield Statement(
                f"UPDATE {self._checkpoints} SET ts={ts},checkpoint={quoted(content)} "
                f"WHERE feed={self._feed} AND ts={previous}",
                1,
            )
        yield from self._deletion(start.forget)

    def _deletion(self, firsts: Sequence[Ts]) -> Iterator[Statement]:
        if firsts:
            listed = ",".join(map(str, firsts))
            text = f"DELETE FROM {self._table} WHERE feed={self._feed} AND first_ts IN ({listed})"
            yield Statement(text, len(firsts))
