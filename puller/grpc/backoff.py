"""Pauses that grow, with an end."""

from __future__ import annotations

from random import Random

from ...actors import Clock


class Backoff:
    """The pauses of one task that is tried again and again, for `total` seconds.

    Each is twice the one before, up to `longest`, and is shortened by up to a half at random, so that
    tasks that failed together don't come again together.
    """

    def __init__(self, clock: Clock, random: Random, *, first: float, longest: float, total: float) -> None:
        self._clock = clock
        self._random = random
        self._next = first
        self._longest = longest
        self._end = clock.now() + total
        self._left = total

    def next(self, least: float = 0.0) -> float | None:
        """The next pause in seconds, not under `least`; None when the time is used up."""
        if self._left <= 0 or self._clock.now() >= self._end:
            return None
        pause = max(least, self._next * (1 - self._random.random() / 2))
        self._next = min(self._next * 2, self._longest)
        self._left -= pause
        return pause
