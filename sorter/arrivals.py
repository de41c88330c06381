"""Runs and resolved timestamps on their way to the Merger."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Final

from msgspec import Struct

from ..events import Ts
from .run import Run
from .table import Table


class Wake(Struct, frozen=True):
    """To the Merger: look at the arrivals."""


WAKE: Final = Wake()


class Arrivals:
    """New runs and resolved timestamps, from any thread, until the Merger collects them.

    One message wakes the Merger for any number of tables, and none is sent while it is busy: 100,000 tables
    don't fill its mailbox, and an idle Merger is woken at once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: list[Run] = []
        self._advanced: dict[Table, Ts] = {}
        self._removed: list[Table] = []
        self.busy = False
        """True from waking the Merger until it has nothing left to send."""

    def post(self, runs: list[Run], resolved: Mapping[Table, Ts], now: float) -> bool:
        """Hand over runs with their resolved ts; True if the Merger must be woken.

        Runs alone don't wake it: they can't leave until a resolved ts advances.
        """
        with self._lock:
            self._runs += runs
            advanced = self._advanced
            moved = False
            for table, ts in resolved.items():
                if ts > table.resolved and not table.removed:
                    table.resolved = ts
                    table.since = now
                    advanced[table] = ts
                    moved = True
            return moved and self._wake()

    def add(self, table: Table) -> bool:
        """Add a table; True if the Merger must be woken."""
        with self._lock:
            self._advanced[table] = table.resolved
            return self._wake()

    def remove(self, table: Table) -> bool:
        """Remove a table and ignore its later changes; True if the Merger must be woken."""
        with self._lock:
            table.removed = True
            self._advanced.pop(table, None)
            self._removed.append(table)
            return self._wake()

    def collect(self) -> tuple[list[Run], dict[Table, Ts], list[Table]]:
        """Return the runs, the tables advanced or added, and the tables removed since the last call."""
        with self._lock:
            runs, self._runs = self._runs, []
            advanced, self._advanced = self._advanced, {}
            removed, self._removed = self._removed, []
        return runs, advanced, removed

    def rest(self) -> bool:
        """The Merger has nothing left to send; False if something came meanwhile. From then on it has
        to be woken again."""
        with self._lock:
            self.busy = bool(self._advanced or self._removed)
            return not self.busy

    def _wake(self) -> bool:
        if self.busy:
            return False
        self.busy = True
        return True
