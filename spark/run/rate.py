"""How many a second."""

from __future__ import annotations

from collections import deque

from ...engine.feed import RATE_SECONDS


class Rate:
    """Of something that is counted, over the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def __call__(self, now: float, count: int) -> float:
        """`now` in seconds; a count that is less than the last begins anew."""
        seen = self._seen
        if seen and count < seen[-1][1]:
            seen.clear()
        seen.append((now, count))
        while seen[0][0] < now - RATE_SECONDS:
            seen.popleft()
        since, before = seen[0]
        return (count - before) / (now - since) if now > since else 0.0
