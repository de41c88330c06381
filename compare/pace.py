"""The speed of a comparison, and its end on request."""

from __future__ import annotations

from threading import Event
from typing import Protocol

from ..actors import Clock


class ComparisonStopped(Exception):
    """The comparison was asked to stop."""


class Pausing(Protocol):
    """Waits; returns True if the comparison is to stop."""

    def __call__(self, timeout: float, /) -> bool: ...


class Pace:
    """Spreads reading over time: on average at most `rows_per_second`; 0: as fast as possible.

    With a `share` below 1, pauses are so long that work takes at most that share of the time.
    """

    def __init__(
        self,
        rows_per_second: float,
        clock: Clock,
        wait: Pausing | None = None,
        *,
        share: float = 1.0,
        range_seconds: float = 1.0,
    ) -> None:
        """No range has more rows than may be read in `range_seconds`."""
        self.rows_per_second = rows_per_second
        """May be changed between two calls."""
        self._clock = clock
        self._wait = wait or Event().wait
        self._rests = 1 / share - 1  # seconds of rest for a second of work
        self._range_seconds = range_seconds
        self._free_at = self._working_since = clock.now()

    def now(self) -> float:
        return self._clock.now()

    def restart(self) -> None:
        """Forget what was done since the last pause."""
        self._working_since = self._clock.now()

    def limit(self, rows: int) -> int:
        """Return the number of rows to read at once, up to `rows`."""
        rate = self.rows_per_second
        return max(1, min(rows, int(rate * self._range_seconds))) if rate else rows

    def spend(self, rows: int) -> None:
        """Account for rows that were read, and wait until more may be. Raises Stopped."""
        pause = 0.0
        if self.rows_per_second:
            now = self._clock.now()
            self._free_at = max(now, self._free_at) + rows / self.rows_per_second
            pause = self._free_at - now
        self.pause(pause)

    def pause(self, seconds: float) -> None:
        """Wait for these seconds, or longer for what was done since the last pause. Raises Stopped."""
        worked = self._clock.now() - self._working_since
        if self._wait(max(seconds, worked * self._rests)):
            raise ComparisonStopped
        self._working_since = self._clock.now()
