"""How often a region's failure may be acted on, so that a broken one doesn't hammer PD and the stores."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final, Generic, TypeVar

T = TypeVar("T")

INTERVAL_SECONDS: Final = 0.1
BURST: Final = 3
ROUND: Final = 128
"""Parked failures looked at in one round."""
ROUND_SECONDS: Final = 0.05
"""The pause between rounds while any are parked."""
HINT_SECONDS: Final = 10.0
"""Of a region that keeps failing, the log speaks at its first failure over the limit and this often."""


class RetryLimiter(Generic[T]):
    """A token bucket per region: one failure per 100 ms, three at once; the others are parked in order.

    A bucket is kept only while it is not full. Belongs to one thread; `now` is the clock's `now()`.
    """

    def __init__(self) -> None:
        self._full_at: dict[int, float] = {}  # by region, when its bucket is full again; oldest use first
        self._hinted: dict[int, float] = {}
        self._parked: deque[tuple[int, T]] = deque()

    def admit(self, region_id: int, failure: T, now: float) -> bool:
        """Whether to act on the failure now; if not, it is parked and comes out of `due`."""
        if self._allow(region_id, now):
            return True
        self._parked.append((region_id, failure))
        return False

    def due(self, now: float) -> list[T]:
        """One round: those of the first 128 parked failures that may be acted on now."""
        found = []
        for _ in range(min(ROUND, len(self._parked))):
            region_id, failure = self._parked.popleft()
            if self._allow(region_id, now):
                found.append(failure)
            else:
                self._parked.append((region_id, failure))
        self._forget(now)
        return found

    def hint(self, region_id: int, now: float) -> bool:
        """Whether the log should say that the region is over its limit."""
        last = self._hinted.get(region_id)
        if last is not None and now - last < HINT_SECONDS:
            return False
        self._hinted.pop(region_id, None)
        self._hinted[region_id] = now
        return True

    @property
    def parked(self) -> int:
        """Failures that wait; call `due` every ROUND_SECONDS while there are any."""
        return len(self._parked)

    def first(self, count: int) -> list[T]:
        """The failures that have waited longest."""
        return [failure for _, failure in islice(self._parked, count)]

    def __len__(self) -> int:
        """Regions that something is kept for."""
        return len(self._full_at.keys() | self._hinted.keys())

    def _allow(self, region_id: int, now: float) -> bool:
        full_at = max(self._full_at.get(region_id, now), now)
        if full_at - now > (BURST - 1) * INTERVAL_SECONDS + 1e-9:  # 1e-9: sums of 0.1 are not exact
            return False
        self._full_at.pop(region_id, None)
        self._full_at[region_id] = full_at + INTERVAL_SECONDS
        self._forget(now)
        return True

    def _forget(self, now: float) -> None:
        """Drop what no longer matters: a few at a time, so that it keeps up with what is added."""
        for kept, age in ((self._full_at, 0.0), (self._hinted, HINT_SECONDS)):
            for region_id in list(islice(kept, 4)):
                if kept[region_id] + age <= now:
                    del kept[region_id]
