"""Runs and resolved timestamps on their way to the Merger."""

from __future__ import annotations

from threading import Lock
from typing import Final, TypeAlias

from msgspec import Struct

from ..events import Receipts, Ts
from .keyspace import SortKeyspace
from .run import SortRun

Uid: TypeAlias = int
"""A table's `uid`."""


class Wake(Struct, frozen=True):
    """To the Merger: look at the arrivals."""


WAKE: Final = Wake()


class New(Struct, frozen=True):
    """Runs, and tables by uid: those added and those that advanced with their resolved ts, those removed."""

    runs: list[SortRun]
    added: dict[Uid, Ts]
    advanced: dict[Uid, Ts]
    """May have tables that were removed, and lower ts than were told before."""
    removed: list[Uid]


class Arrivals:
    """New runs and resolved timestamps, from any thread, until the Merger collects them.

    One message wakes the Merger for any number of tables, and none is sent while it is busy: 100,000 tables
    don't fill its mailbox, and an idle Merger is woken at once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: list[SortRun] = []
        self._advanced: dict[Uid, Ts] = {}
        self._added: dict[Uid, Ts] = {}
        self._removed: list[Uid] = []
        self.receipts = Receipts()
        self.busy = False
        """True from waking the Merger until it has nothing left to send."""

    def post(self, runs: list[SortRun], resolved: dict[Uid, Ts]) -> bool:
        """Hand over runs with the resolved ts of tables, a dict that is this object's from then on; True if
        the Merger must be woken.

        Runs alone don't wake it: they can't leave until a resolved ts advances.
        """
        with self._lock:
            self._runs += runs
            if self._advanced:
                self._advanced.update(resolved)
            else:
                self._advanced = resolved
            return bool(resolved) and self._wake()

    def add(self, table: SortKeyspace, resolved: Ts) -> bool:
        """Add a table; True if the Merger must be woken."""
        with self._lock:
            self._added[table.uid] = resolved
            return self._wake()

    def remove(self, table: SortKeyspace) -> bool:
        """Remove a table and ignore its later changes; True if the Merger must be woken."""
        with self._lock:
            table.removed = True
            self._added.pop(table.uid, None)
            self._removed.append(table.uid)
            return self._wake()

    def collect(self) -> New:
        """Return what came since the last call."""
        with self._lock:
            new = New(self._runs, self._added, self._advanced, self._removed)
            self._runs, self._added, self._advanced, self._removed = [], {}, {}, []
        return new

    def rest(self) -> bool:
        """The Merger has nothing left to send; False if something came meanwhile. From then on it has
        to be woken again."""
        with self._lock:
            self.busy = bool(self._added or self._advanced or self._removed)
            return not self.busy

    def _wake(self) -> bool:
        if self.busy:
            return False
        self.busy = True
        return True
