"""The records of transactions that parallel workers applied after the checkpoint, in SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol

from ..events import Row, Ts
from .applied import APPLIED_TABLE, Applied, parse_applied
from .statement import Statement, quoted
from .worker import Start


class Session(Protocol):
    def execute(self, statement: str, /) -> int: ...

    def rows(self, statement: str, /) -> list[Row]: ...


class AppliedRows(ABC):
    """One feed's rows; `schema` is the quoted name of its home."""

    def __init__(self, session: Session, schema: str, checkpoints: str, feed: str) -> None:
        self._session = session
        self._table = f"{schema}.{APPLIED_TABLE}"
        self._checkpoints = checkpoints
        self._feed = quoted(feed)

    @abstractmethod
    def load(self) -> list[Applied]:
        """Return all records, once no SQL transaction of a lost connection is open that may add one."""

    def read(self, lock: str = "") -> list[Applied]:
        """Return the records that the session sees."""
        rows = self._session.rows(f"SELECT applied FROM {self._table} WHERE feed={self._feed}{lock}")
        return [parse_applied(text, self._table) for (text,) in rows]

    def forget(self, firsts: Sequence[Ts]) -> None:
        for statement in self._deletion(firsts):
            self._session.execute(statement.text)

    def statements(self, start: Start) -> Iterator[Statement]:
        """Yield the statements for the beginning of a worker's SQL transaction."""
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
