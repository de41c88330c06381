"""Counts of what a feed of pumps has delivered, and when it last applied something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from threading import Lock

from ...actors import Clock
from ...events import Ddl, Item, Op, Transaction, Ts

_NAMES: dict[Op, str] = {"insert": "Insert", "update": "Update", "delete": "Delete"}


class Activity:
    """`delivered` and `acknowledged` are called in actors' turns; any thread reads the rest."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.last_success = clock.now()
        """Time at which the last transaction with changes was applied; the start before that."""
        self.events: Counter[str] = Counter(Insert=0, Update=0, Delete=0, DDL=0)
        """Number of row and schema changes delivered."""
        self._lock = Lock()
        self._first: Ts | None = None
        """A delivered change at or above this ts isn't applied yet."""
        self._last: Ts = 0
        """Commit ts of the last change delivered."""

    def delivered(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Ddl):
                self.events["DDL"] += 1
            elif isinstance(item, Transaction) and item.rows:
                for op, count in Counter([row.op for row in item.rows]).items():
                    self.events[_NAMES[op]] += count
            else:
                continue
            with self._lock:
                self._last = item.commit_ts
                if self._first is None:
                    self._first = item.commit_ts

    def acknowledged(self, ts: Ts) -> None:
        with self._lock:
            if self._first is not None and self._first <= ts:
                self.last_success = self._clock.now()
                self._first = None if self._last <= ts else ts + 1
