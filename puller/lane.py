"""The timestamps that one of several sources may use."""

from __future__ import annotations

from threading import Event, Lock
from typing import Final

from msgspec import Struct

from ..events import Ts


class Lane(Struct, frozen=True):
    """The timestamps that leave `index` when divided by `count`: no other source of the feed uses them."""

    index: int = 0
    count: int = 1
    source: str = "source"
    """Name of the source in waits and retries."""

    def at_most(self, ts: Ts) -> Ts:
        """Return the greatest timestamp of the lane that isn't above `ts`."""
        return ts - (ts - self.index) % self.count

    def at_least(self, ts: Ts) -> Ts:
        """Return the lowest timestamp of the lane that isn't below `ts`."""
        return ts + (self.index - ts) % self.count


ALONE: Final = Lane()
"""The lane of a feed's only source: all timestamps."""


class LoadBarrier:
    """Lets no source of a feed go on until all have loaded their tables. Thread-safe.

    While tables are loaded, a sink drops the changes of all others: those of a table created later would be
    lost if its source went on before the snapshot of every other source is complete.
    """

    def __init__(self, sources: int) -> None:
        self._lock = Lock()
        self._sources = sources
        self._ends: dict[int, Ts] = {}
        self._complete = Event()

    def loaded(self, lane: Lane, ts: Ts) -> None:
        """Note that a source has loaded its tables, by transactions up to `ts`."""
        with self._lock:
            self._ends[lane.index] = ts
            if len(self._ends) == self._sources:
                self._complete.set()

    def wait(self, seconds: float) -> bool:
        """Wait until all have; False after `seconds`."""
        return self._complete.wait(seconds)

    @property
    def end(self) -> Ts:
        """The last ts of the snapshots, once all are complete."""
        return max(self._ends.values())
