"""A rate per second."""

from __future__ import annotations

from collections import deque
from typing import Final

RATE_SECONDS: Final = 5.0
"""Period over which a rate is averaged."""


class Rate:
    """Rate of a growing count over the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def __call__(self, now: float, count: int) -> float:
        """Add a count at `now`, in seconds, and return the rate; a decreasing count restarts it."""
        seen = self._seen
        if seen and count < seen[-1][1]:
            seen.clear()
        seen.append((now, count))
        while seen[0][0] < now - RATE_SECONDS:
            seen.popleft()
        since, before = seen[0]
        return (count - before) / (now - since) if now > since else 0.0
