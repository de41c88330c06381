"""How many regions of a store may be in their incremental scan at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

REGION_SCAN_LIMIT: Final = 40
"""Per store. A scan reads from disk; more of them at once slow down the store's own work."""


class _Bucket(Generic[T]):
    __slots__ = ("used", "waiting")

    def __init__(self) -> None:
        self.used = 0
        self.waiting: deque[T] = deque()


class TokenLimiter(Generic[T]):
    """Requests on their way to the stores, each with a queue in order and at most `limit` tokens in use.

    `take` gives out requests and takes a token for each; the token comes back by `release` once the
    region is initialised, or by `revoke` when the region fails before, a failed send included. So the
    limit is never passed, however long sending takes. Belongs to one thread; costs nothing while idle.
    """

    def __init__(self, limit: int = REGION_SCAN_LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"region scan limit must be at least 1, not {limit}")
        self.limit = limit
        self._buckets: dict[Hashable, _Bucket[T]] = {}
        self._open: dict[Hashable, None] = {}  # buckets with both a request and a token, in order

    def add(self, store: Hashable, request: T) -> None:
        """Queue a request for a store; "" or 0 may stand for an unknown one."""
        bucket = self._buckets.setdefault(store, _Bucket())
        bucket.waiting.append(request)
        if bucket.used < self.limit:
            self._open[store] = None

    def take(self) -> list[T]:
        """Every request that may be sent now, in the order of its store's queue."""
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
        """A region of the store is initialised. Nothing happens if no token is in use."""
        bucket = self._buckets.get(store)
        if bucket is None or not bucket.used:
            return
        bucket.used -= 1
        if bucket.waiting:
            self._open[store] = None
        elif not bucket.used:
            del self._buckets[store]

    def revoke(self, store: Hashable) -> None:
        """A region of the store failed before it was initialised."""
        self.release(store)

    def used(self, store: Hashable) -> int:
        """Tokens in use."""
        bucket = self._buckets.get(store)
        return bucket.used if bucket else 0

    def waiting(self, store: Hashable) -> int:
        """Requests in the store's queue."""
        bucket = self._buckets.get(store)
        return len(bucket.waiting) if bucket else 0

    def statistics(self) -> dict[Hashable, tuple[int, int]]:
        """Of each store with something going on: tokens in use, requests waiting."""
        return {store: (bucket.used, len(bucket.waiting)) for store, bucket in self._buckets.items()}
