"""Rate limit of the retries of a failed region, so that a broken one doesn't overload PD and the stores."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final, Generic, TypeVar

T = TypeVar("T")

INTERVAL_SECONDS: Final = 0.1
BURST: Final = 3
ROUND: Final = 128
"""Number of delayed failures examined in one round."""
ROUND_SECONDS: Final = 0.05
"""Pause between rounds while any failures are delayed."""
HINT_SECONDS: Final = 10.0
"""Interval of log messages about a region that keeps failing; the first is logged when it exceeds the
limit."""


class RetryLimiter(Generic[T]):
    """A token bucket per region: one failure per 100 ms, three at once; further ones are delayed in order.

    A bucket is kept only while it isn't full. Not thread-safe; `now` is the clock's `now()`.
    """

    def __init__(self) -> None:
        self._full_at: dict[int, float] = {}  # by region: when its bucket is full; least recently used first
        self._hinted: dict[int, float] = {}
        self._parked: deque[tuple[int, T]] = deque()

    def admit(self, region_id: int, failure: T, now: float) -> bool:
        """True if the failure may be handled now; otherwise it is delayed and returned by `due` later."""
        if self._allow(region_id, now):
            return True
        self._parked.append((region_id, failure))
        return False

    def due(self, now: float) -> list[T]:
        """Run one round: return those of the first 128 delayed failures that may be handled now."""
        due = []
        for _ in range(min(ROUND, len(self._parked))):
            region_id, failure = self._parked.popleft()
            if self._allow(region_id, now):
                due.append(failure)
            else:
                self._parked.append((region_id, failure))
        self._forget(now)
        return due

    def hint(self, region_id: int, now: float) -> bool:
        """True if the log should report that the region exceeds its limit."""
        last = self._hinted.get(region_id)
        if last is not None and now - last < HINT_SECONDS:
            return False
        self._hinted.pop(region_id, None)
        self._hinted[region_id] = now
        return True

    @property
    def parked(self) -> int:
        """Number of delayed failures; call `due` every ROUND_SECONDS while there are any."""
        return len(self._parked)

    def first(self, count: int) -> list[T]:
        """Return the failures that have waited longest."""
        return [failure for _, failure in islice(self._parked, count)]

    def __len__(self) -> int:
        """Number of regions with a bucket."""
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
        """Drop full buckets: a few at a time, which keeps pace with the additions."""
        for kept, age in ((self._full_at, 0.0), (self._hinted, HINT_SECONDS)):
            for region_id in list(islice(kept, 4)):
                if kept[region_id] + age <= now:
                    del kept[region_id]
