"""Timestamps, as PD's TSO gives them: physical milliseconds << 18 | logical."""

from __future__ import annotations

from ..actors.clock import Clock
from ..events import LOGICAL_BITS, Ts, compose_ts

MAX_LOGICAL = (1 << LOGICAL_BITS) - 1
MAX_TS: Ts = (1 << 64) - 1
"""Given for the newest there is, without a timestamp."""


class Oracle:
    """Gives each timestamp once, in order, whatever the clock does. Loop thread only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jumped_ms = 0
        self.last: Ts = 0
        """The last one given."""

    def next(self, count: int = 1) -> Ts:
        """The last of `count` new ones, at most 2**18 - 1 of them; they end at it without a gap."""
        if not 0 < count <= MAX_LOGICAL:
            raise ValueError(f"count: {count} timestamps at once; 1 to {MAX_LOGICAL} can be given")
        self.last = max(self.last, compose_ts(self.now_ms()))
        if (self.last & MAX_LOGICAL) + count > MAX_LOGICAL:
            self.last = compose_ts((self.last >> LOGICAL_BITS) + 1)
        self.last += count
        return self.last

    def now_ms(self) -> int:
        """What PD takes for the time, in Unix milliseconds."""
        return int(self._clock.time() * 1000) + self._jumped_ms

    def jump(self, seconds: float) -> None:
        """Let PD's clock step. Back, too: then timestamps stay where they are and only count on."""
        self._jumped_ms += int(seconds * 1000)
