"""Limit on concurrent incremental scans of a store."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

REGION_SCAN_LIMIT: Final = 40
"""Limit per store. A scan reads from disk, and many concurrent scans slow down the store's own work."""


class _Bucket(Generic[T]):
    __slots__ = ("used", "waiting")

    def __init__(self) -> None:
        self.used = 0
        self.waiting: deque[T] = deque()


class TokenLimiter(Generic[T]):
    """Queues of requests to the stores, in order, with at most `limit` tokens in use per store.

    `take` returns requests and takes a token for each. The token is returned by `release` when the region is
    initialised or fails before that, including a failed send. So the limit holds, however long sending
    takes. Not thread-safe; costs nothing while idle.
    """

    def __init__(self, limit: int = REGION_SCAN_LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"region scan limit must be at least 1, not {limit}")
        self.limit = limit
        self._buckets: dict[Hashable, _Bucket[T]] = {}
        self._open: dict[Hashable, None] = {}  # buckets with both a request and a token, in order

    def add(self, store: Hashable, request: T) -> None:
        """Queue a request for a store; "" or 0 stands for an unknown store."""
        bucket = self._buckets.setdefault(store, _Bucket())
        bucket.waiting.append(request)
        if bucket.used < self.limit:
            self._open[store] = None

    def take(self) -> list[T]:
        """Return every request that may be sent now, in the order of its store's queue."""
        taken = []
        for store in self._open:
            bucket = self._buckets[store]
            while bucket.waiting and bucket.used < self.limit:
                taken.append(bucket.waiting.popleft())
                bucket.used += 1
        self._open.clear()
        return taken

    def acquire(self, store: Hashable) -> None:
        """Take a token for a request that did not come from the queue."""
        self._buckets.setdefault(store, _Bucket()).used += 1

    def release(self, store: Hashable) -> None:
        """Return a region's token. Does nothing if no token is in use."""
        bucket = self._buckets.get(store)
        if bucket is None or not bucket.used:
            return
        bucket.used -= 1
        if bucket.waiting:
            self._open[store] = None
        elif not bucket.used:
            del self._buckets[store]

    def used(self, store: Hashable) -> int:
        """Return the number of tokens in use."""
        bucket = self._buckets.get(store)
        return bucket.used if bucket else 0

    def waiting(self, store: Hashable) -> int:
        """Return the number of requests in the store's queue."""
        bucket = self._buckets.get(store)
        return len(bucket.waiting) if bucket else 0

    def statistics(self) -> dict[Hashable, tuple[int, int]]:
        """Return (tokens in use, requests waiting) of each active store."""
        return {store: (bucket.used, len(bucket.waiting)) for store, bucket in self._buckets.items()}
