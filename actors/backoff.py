"""Growing pauses between attempts."""

from __future__ import annotations

from random import Random

from .clock import Clock


def pause_seconds(failures: int, first: float, longest: float, factor: float = 2.0) -> float:
    """Return the pause after the n-th failure in a row: `first`, growing by `factor` up to `longest`."""
    return min(longest, first * factor ** min(failures - 1, 64))


class Backoff:
    """The pauses of one task that is tried again for up to `total` seconds from now.

    Each is twice the one before, up to `longest`. With `random` it is shortened by up to a half, so that
    tasks that failed together don't come again together.
    """

    def __init__(
        self, clock: Clock, random: Random | None = None, *, first: float, longest: float, total: float
    ) -> None:
        self._clock = clock
        self._random = random
        self._first = first
        self._longest = longest
        self._failures = 0
        self._end = clock.now() + total
        self._left = total

    def next(self, least: float = 0.0) -> float | None:
        """Return the next pause in seconds, at least `least`; None when the time is used up."""
        if self._left <= 0 or self._clock.now() >= self._end:
            return None
        self._failures += 1
        pause = pause_seconds(self._failures, self._first, self._longest)
        if self._random is not None:
            pause *= 1 - self._random.random() / 2
        pause = max(least, pause)
        self._left -= pause
        return pause
