"""In-process transactions: Percolator's two phases over the regions, without gRPC."""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TypeVar

from msgspec.structs import replace

from ..events import Ts
from . import percolator
from .keyspace import Keyspace
from .options import CommitMode
from .oracle import Oracle
from .percolator import Rejected
from .region import Apply, Region
from .resolved import Resolved
from .shard import DELETE, INSERT, LOCK, PESSIMISTIC, PUT, SHARED, SHARED_PESSIMISTIC, Attempt

T = TypeVar("T")

OPS = {
    "put": PUT,
    "delete": DELETE,
    "insert": INSERT,
    "lock": LOCK,
    "pessimistic": PESSIMISTIC,
    "shared": SHARED,
    "shared_pessimistic": SHARED_PESSIMISTIC,
}
BATCH = 1024
"""Keys per step; other tasks run between steps."""
ASYNC_COMMIT_KEYS = 256
"""TiDB's limit: the primary lock of an async commit names all other keys."""
TTL_MS = 3_000
"""TiDB's TTL of a small transaction."""

_key = itemgetter(1)


class Transactions:
    """Runs transactions. To be used in the loop's thread only."""

    def __init__(
        self,
        keyspace: Keyspace,
        oracle: Oracle,
        apply: Apply,
        resolved: Resolved,
        congestion_seconds: float,
    ) -> None:
        self._keyspace = keyspace
        self._oracle = oracle
        self._apply = apply
        self._resolved = resolved
        self._congestion_seconds = congestion_seconds

    async def write(
        self, mutations: Sequence[tuple[str, bytes, bytes]], start_ts: Ts = 0, mode: CommitMode = "two_phase"
    ) -> Ts:
        """Prewrite and commit; return the commit ts. Rejected leaves no lock behind."""
        start_ts = start_ts or self._oracle.next()
        mutations = last_of_each_key(mutations)
        keys = [mutation[1] for mutation in mutations]
        if not keys:
            raise ValueError("mutations: a transaction needs at least one")
        commit_ts = 0
        try:
            if mode == "one_pc":
                commit_ts = await self._commit_at_once(start_ts, mutations)
                if commit_ts:
                    return commit_ts
            asynchronous = mode != "two_phase" and len(keys) <= ASYNC_COMMIT_KEYS
            secondaries = keys[1:] if asynchronous else None
            commit_ts = await self.prewrite(start_ts, mutations, keys[0], TTL_MS, secondaries=secondaries)
        except Rejected:
            await self.rollback(start_ts, keys)
            raise
        return await self.commit(start_ts, keys, commit_ts)

    async def prewrite(
        self,
        start_ts: Ts,
        mutations: Sequence[tuple[str, bytes, bytes]],
        primary: bytes,
        ttl_ms: int = TTL_MS,
        generation: int = 0,
        min_commit_ts: Ts = 0,
        secondaries: Sequence[bytes] | None = None,
    ) -> Ts:
        """Lock the keys. With `secondaries`, all keys except the primary, it is an async commit.

        Returns the commit ts of an async commit if these are all its keys, 0 for a commit in two phases.
        """
        attempt = Attempt(start_ts, primary, ttl_ms, len(mutations), min_commit_ts)
        asked = self._oracle.next() + 1 if secondaries is not None else 0
        commit_ts = 0
        mutations = last_of_each_key(mutations)
        async for region, batch in self._batches(mutations, _key):
            steps = [(OPS[op], key, value) for op, key, value in batch]
            if secondaries is not None:
                attempt = self._calculating(region, attempt, asked)
                attempt.secondaries = tuple(secondaries)
            attempt.floor = max(attempt.floor, self._resolved.floor(region))
            commit_ts = max(commit_ts, self._apply(region, percolator.prewrite, attempt, steps, generation))
        return commit_ts

    async def _commit_at_once(self, start_ts: Ts, mutations: Sequence[tuple[str, bytes, bytes]]) -> Ts:
        """Commit in one step if one region has all keys; return the commit ts, 0 if several regions have
        them."""
        first, last = mutations[0][1], mutations[-1][1]
        region = await self._roomy(first)
        if not region.holds_raw(last):
            return 0
        steps = [(OPS[op], key, value) for op, key, value in mutations]
        attempt = Attempt(start_ts, first, TTL_MS, len(mutations))
        attempt = self._calculating(region, attempt, self._oracle.next() + 1)
        return int(self._apply(region, percolator.commit_at_once, attempt, steps))

    def _calculating(self, region: Region, attempt: Attempt, asked: Ts) -> Attempt:
        """Return the attempt for one region with the min_commit_ts above all reads and resolved ts."""
        least = self._resolved.least_commit_ts(attempt.start_ts, attempt.for_update_ts, asked)
        floor = self._resolved.floor(region)
        return replace(attempt, min_commit_ts=least, floor=floor, async_commit=True)

    async def commit(self, start_ts: Ts, keys: Sequence[bytes], commit_ts: Ts = 0) -> Ts:
        """Commit or roll back `keys`, which are in ascending order."""
        commit_ts = commit_ts or self._oracle.next()
        async for region, batch in self._batches(keys, bytes):
            self._apply(region, percolator.commit, start_ts, commit_ts, batch)
        return commit_ts

    async def rollback(self, start_ts: Ts, keys: Sequence[bytes]) -> None:
        """Commit or roll back `keys`, which are in ascending order."""
        async for region, batch in self._batches(keys, bytes):
            self._apply(region, percolator.rollback, start_ts, batch)

    async def _batches(
        self, items: Sequence[T], key: Callable[[T], bytes]
    ) -> AsyncIterator[tuple[Region, Sequence[T]]]:
        """Yield ascending items in steps within one region; the caller must not await while it uses one."""
        at = 0
        while at < len(items):
            if at:
                await asyncio.sleep(0)
            region = await self._roomy(key(items[at]))
            end = min(at + BATCH, len(items))
            _, border = region.raw_span
            if border and key(items[end - 1]) >= border:
                end = bisect_left(items, border, at, end, key=key)
            yield region, items[at:end]
            at = end

    async def _roomy(self, key: bytes) -> Region:
        """Return the region that holds the key when its streams have room; the region may change
        meanwhile."""
        region = self._keyspace.locate_raw(key)
        full = [each.connection for each in region.feed or () if each.connection.full]
        if full and self._congestion_seconds:
            waits = asyncio.gather(*(connection.room() for connection in full))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waits, self._congestion_seconds)
        return self._keyspace.locate_raw(key)


def last_of_each_key(mutations: Sequence[tuple[str, bytes, bytes]]) -> Sequence[tuple[str, bytes, bytes]]:
    """Return the mutations sorted by key, with the last one of each key."""
    mutations = sorted(mutations, key=_key)
    if all(a[1] != b[1] for a, b in pairwise(mutations)):
        return mutations
    return list({mutation[1]: mutation for mutation in mutations}.values())
