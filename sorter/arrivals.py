"""What the Writers have for the Merger."""

from __future__ import annotations

from threading import Lock
from typing import Final

from msgspec import Struct

from ..events import Ts
from .run import Run, Table


class Wake(Struct, frozen=True):
    """To the Merger: look at the arrivals."""


WAKE: Final = Wake()


class Arrivals:
    """New runs and resolved timestamps, from any thread, until the Merger collects them.

    One message wakes the Merger however many tables have something, and none while it is busy: so
    100,000 tables don't fill its mailbox, and an idle Merger hears at once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: list[Run] = []
        self._advanced: dict[Table, Ts] = {}
        self.busy = False
        """From what wakes the Merger until it has nothing left to send."""

    def post(self, table: Table, runs: list[Run], resolved: Ts, now: float) -> bool:
        """Hand over a table's runs and its resolved ts, together; True if the Merger must be woken.

        Runs alone don't wake it: they can't leave before a resolved ts does.
        """
        with self._lock:
            self._runs += runs
            if resolved <= table.resolved:
                return False
            table.resolved = resolved
            table.since = now
            self._advanced[table] = resolved
            return self._wake()

    def change(self, table: Table) -> bool:
        """A table was added or removed; True if the Merger must be woken."""
        with self._lock:
            self._advanced[table] = table.resolved
            return self._wake()

    def collect(self) -> tuple[list[Run], dict[Table, Ts]]:
        """What came since the last time: runs, and the tables that advanced, were added or removed."""
        with self._lock:
            runs, self._runs = self._runs, []
            advanced, self._advanced = self._advanced, {}
        return runs, advanced

    def rest(self) -> bool:
        """The Merger has nothing left to send; False if something came meanwhile. From then on it has
        to be woken again."""
        with self._lock:
            self.busy = bool(self._advanced)
            return not self.busy

    def _wake(self) -> bool:
        if self.busy:
            return False
        self.busy = True
        return True
