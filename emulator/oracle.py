"""Timestamps as of PD's TSO: physical milliseconds << 18 | logical."""

from __future__ import annotations

from ..actors.clock import Clock
from ..events import LOGICAL_BITS, MAX_LOGICAL, Ts, compose_ts

MAX_TS: Ts = (1 << 64) - 1
"""The ts of reads of the newest version, without a timestamp."""


class Oracle:
    """Gives each timestamp once, in ascending order, whatever the clock does. To be used in the loop's thread
    only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jumped_ms = 0
        self.last: Ts = 0
        """The last timestamp given."""

    def next(self, count: int = 1) -> Ts:
        """Return the last of `count` consecutive new timestamps, at most 2**18 - 1."""
        if not 0 < count <= MAX_LOGICAL:
            raise ValueError(f"count: {count} timestamps at once; 1 to {MAX_LOGICAL} can be given")
        self.last = max(self.last, compose_ts(self.now_ms()))
        if (self.last & MAX_LOGICAL) + count > MAX_LOGICAL:
            self.last = compose_ts((self.last >> LOGICAL_BITS) + 1)
        self.last += count
        return self.last

    def now_ms(self) -> int:
        """Return PD's time in Unix milliseconds."""
        return int(self._clock.time() * 1000) + self._jumped_ms

    def jump(self, seconds: float) -> None:
        """Move PD's clock, forward or back. After a step back timestamps only count on until the clock has
        caught up."""
        self._jumped_ms += int(seconds * 1000)
