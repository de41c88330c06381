"""The speed of a comparison, and its end on request."""

from __future__ import annotations

from threading import Event
from typing import Protocol

from ..actors import Clock


class Stopped(Exception):
    """The comparison was asked to stop."""


class Pausing(Protocol):
    """Waits; returns True if the comparison is to stop."""

    def __call__(self, timeout: float, /) -> bool: ...


class Pace:
    """Spreads reading over time: on average at most `rows_per_second`; 0: as fast as possible."""

    def __init__(self, rows_per_second: float, clock: Clock, wait: Pausing | None = None) -> None:
        self._rate = rows_per_second
        self._clock = clock
        self._wait = wait or Event().wait
        self._free_at = clock.now()

    def now(self) -> float:
        return self._clock.now()

    def limit(self, rows: int) -> int:
        """Return the number of rows to read at once: up to `rows`, and no more than for one second."""
        return max(1, min(rows, int(self._rate))) if self._rate else rows

    def spend(self, rows: int) -> None:
        """Account for rows that were read, and wait until more may be. Raises Stopped."""
        pause = 0.0
        if self._rate:
            now = self._clock.now()
            self._free_at = max(now, self._free_at) + rows / self._rate
            pause = self._free_at - now
        self.pause(pause)

    def pause(self, seconds: float) -> None:
        """Raises Stopped."""
        if self._wait(seconds):
            raise Stopped
