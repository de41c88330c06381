"""Resolved ts: from time to time each store tells how far its regions are known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..events import Ts
from .keyspace import Keyspace
from .oracle import MAX_TS, Oracle
from .region import Region

if TYPE_CHECKING:
    from .change_data import ChangeData


class Resolved:
    """Loop thread only."""

    def __init__(self, keyspace: Keyspace, oracle: Oracle) -> None:
        self._keyspace = keyspace
        self._oracle = oracle
        self.feeds: list[ChangeData] = []
        self.last: Ts = 0
        """The highest one sent."""
        self.max_ts: Ts = 0
        """The highest at which anything was read or resolved: what calculates its own commit ts, in an
        asynchronous commit or 1PC, commits above it."""
        self.paused = False

    async def tick_forever(self, seconds: float | None) -> None:
        while seconds is not None:
            await asyncio.sleep(seconds)
            if not self.paused:
                self.tick()

    def tick(self) -> Ts:
        """Send now; the highest one sent. A region with locks is held below the oldest."""
        now = self.last = self._oracle.next()
        self.observe(now)
        held = {region.id: region.shard.resolved(now) for region in self._keyspace.locked.values()}
        for feed in self.feeds:
            feed.resolve(now, held)
        return now

    def observe(self, ts: Ts) -> None:
        """Note that somebody has seen what is committed up to `ts`; MAX_TS says nothing."""
        if ts != MAX_TS:
            self.max_ts = max(self.max_ts, ts)

    def least_commit_ts(self, start_ts: Ts, for_update_ts: Ts, asked: Ts) -> Ts:
        """For a transaction that calculates it: above all that was seen, and at least what it asks for."""
        return max(self.max_ts + 1, start_ts + 1, for_update_ts + 1, asked)

    def floor(self, region: Region) -> Ts:
        """What is locked in the region from now on must commit above this."""
        return self.last if region.feed is not None else 0
