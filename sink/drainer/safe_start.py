"""Safe mode after a start from a checkpoint that may be older than its target."""

from __future__ import annotations

from typing import Final

from ...actors import Clock
from ...events import Ts, physical_ms
from ..safe_mode import AFTER_START, SafeMode

SAFE_SECONDS: Final = 300.0
"""Least duration of safe mode, as in the original."""


class SafeStart:
    """Keeps safe mode until everything that was applied before the start has been applied again.

    That is after SAFE_SECONDS, once the checkpoint has passed the time of the start: a feed may be slower
    than the one before it.
    """

    def __init__(self, safe_mode: SafeMode, clock: Clock) -> None:
        self._safe_mode = safe_mode
        self._clock = clock
        self._began: tuple[float, float] | None = None
        """The start by both of the clock's times; None while safe mode isn't needed."""

    @property
    def is_over(self) -> bool:
        return self._began is None

    def begin(self) -> None:
        """Begin the period, again if it has begun."""
        if self._began is None:
            self._safe_mode.enter(AFTER_START)
        self._began = self._clock.now(), self._clock.time()

    def reached(self, ts: Ts) -> None:
        """Note that everything up to `ts` is applied."""
        if self._began is None:
            return
        now, moment = self._began
        if self._clock.now() - now >= SAFE_SECONDS and physical_ms(ts) >= moment * 1000:
            self._began = None
            self._safe_mode.leave(AFTER_START)
