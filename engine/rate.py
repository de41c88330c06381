"""A rate per second."""

from __future__ import annotations

from collections import deque
from typing import Final

RATE_SECONDS: Final = 5.0
"""Least period over which a rate is averaged."""
LONGEST_SECONDS: Final = 60.0
"""Greatest period, for a count that grows in bursts: it reaches back to the beginning of the last one."""


class Rate:
    """Rate of a growing count over the last few seconds, or since its last burst began."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def __call__(self, now: float, count: int) -> float:
        """Add a count at `now`, in seconds, and return the rate; a decreasing count restarts it."""
        seen = self._seen
        if seen and count < seen[-1][1]:
            seen.clear()
        if len(seen) > 1 and seen[-1][1] == seen[-2][1] == count:
            seen.pop()  # of equal counts the first and the last one matter
        seen.append((now, count))
        while len(seen) > 1 and seen[1][0] <= now - LONGEST_SECONDS:
            seen.popleft()
        since, before = seen[0]
        for time, earlier in reversed(seen):
            if time <= now - RATE_SECONDS and earlier < count:
                since, before = time, earlier
                break
        return (count - before) / (now - since) if now > since else 0.0
