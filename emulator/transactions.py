"""Transactions written in-process: Percolator's two phases over the regions, without gRPC."""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

from ..events import Ts
from . import percolator
from .keyspace import Keyspace
from .oracle import Oracle
from .percolator import Rejected
from .region import Region
from .resolved import Resolved
from .shard import DELETE, INSERT, LOCK, PESSIMISTIC, PUT, Attempt

OPS = {"put": PUT, "delete": DELETE, "insert": INSERT, "lock": LOCK, "pessimistic": PESSIMISTIC}
BATCH = 1024
"""Keys of one step; between steps others have their turn."""
TTL_MS = 3_000
"""TiDB's for a small transaction."""

_key = itemgetter(1)


class Transactions:
    """Loop thread only."""

    def __init__(
        self,
        keyspace: Keyspace,
        oracle: Oracle,
        apply: Callable[..., Any],
        resolved: Resolved,
        patience_seconds: float,
    ) -> None:
        self._keyspace = keyspace
        self._oracle = oracle
        self._apply = apply
        self._resolved = resolved
        self._patience_seconds = patience_seconds

    async def write(self, mutations: Sequence[tuple[str, bytes, bytes]], start_ts: Ts = 0) -> Ts:
        """Prewrite and commit; the commit ts. Rejected leaves no lock behind."""
        start_ts = start_ts or self._oracle.next()
        mutations = last_of_each_key(mutations)
        keys = [mutation[1] for mutation in mutations]
        if not keys:
            raise ValueError("mutations: a transaction needs at least one")
        try:
            await self.prewrite(start_ts, mutations, keys[0], TTL_MS)
        except Rejected:
            await self.rollback(start_ts, keys)
            raise
        return await self.commit(start_ts, keys)

    async def prewrite(
        self,
        start_ts: Ts,
        mutations: Sequence[tuple[str, bytes, bytes]],
        primary: bytes,
        ttl_ms: int = TTL_MS,
        generation: int = 0,
        min_commit_ts: Ts = 0,
    ) -> None:
        attempt = Attempt(start_ts, primary, ttl_ms, len(mutations), min_commit_ts)
        mutations = last_of_each_key(mutations)
        async for region, batch in self._batches(mutations, _key):
            steps = [(OPS[op], key, value) for op, key, value in batch]
            attempt.floor = max(attempt.floor, self._resolved.floor(region))
            self._apply(region, percolator.prewrite, attempt, steps, generation)

    async def commit(self, start_ts: Ts, keys: Sequence[bytes], commit_ts: Ts = 0) -> Ts:
        """`keys` ascend."""
        commit_ts = commit_ts or self._oracle.next()
        async for region, batch in self._batches(keys):
            self._apply(region, percolator.commit, start_ts, commit_ts, batch)
        return commit_ts

    async def rollback(self, start_ts: Ts, keys: Sequence[bytes]) -> None:
        """`keys` ascend."""
        async for region, batch in self._batches(keys):
            self._apply(region, percolator.rollback, start_ts, batch)

    async def _batches(
        self, items: Sequence[Any], key: Callable[[Any], bytes] = bytes
    ) -> AsyncIterator[tuple[Region, Sequence[Any]]]:
        """Ascending items in steps of one region; the caller must not wait while it uses one."""
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
        """The region that holds the key, once the streams it feeds have room; it may change meanwhile."""
        region = self._keyspace.locate_raw(key)
        full = [each.connection for each in region.feed or () if each.connection.full]
        if full and self._patience_seconds:
            waits = asyncio.gather(*(connection.room() for connection in full))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waits, self._patience_seconds)
        return self._keyspace.locate_raw(key)


def last_of_each_key(mutations: Sequence[tuple[str, bytes, bytes]]) -> Sequence[tuple[str, bytes, bytes]]:
    """By key; of several for one key the last."""
    mutations = sorted(mutations, key=_key)
    if all(a[1] != b[1] for a, b in pairwise(mutations)):
        return mutations
    return list({mutation[1]: mutation for mutation in mutations}.values())
