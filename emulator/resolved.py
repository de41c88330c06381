"""Resolved ts, which each store sends periodically."""

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
    """Sends resolved ts. To be used in the loop's thread only."""

    def __init__(self, keyspace: Keyspace, oracle: Oracle) -> None:
        self._keyspace = keyspace
        self._oracle = oracle
        self.feeds: list[ChangeData] = []
        self.last: Ts = 0
        """The highest resolved ts sent."""
        self.max_ts: Ts = 0
        """The highest ts at which anything was read or resolved: an async commit or 1PC commits above it."""
        self.paused = False

    async def tick_forever(self, seconds: float | None) -> None:
        while seconds is not None:
            await asyncio.sleep(seconds)
            if not self.paused:
                self.tick()

    def tick(self) -> Ts:
        """Send resolved ts now; return the highest. A region with locks is held below the oldest one."""
        now = self.last = self._oracle.next()
        self.observe(now)
        held = {region.id: region.shard.resolved(now) for region in self._keyspace.locked.values()}
        for feed in self.feeds:
            feed.resolve(now, held)
        return now

    def observe(self, ts: Ts) -> None:
        """Note a read of what is committed up to `ts`; MAX_TS is ignored."""
        if ts != MAX_TS:
            self.max_ts = max(self.max_ts, ts)

    def least_commit_ts(self, start_ts: Ts, for_update_ts: Ts, asked: Ts) -> Ts:
        """Return the min_commit_ts of an async commit or 1PC: above every ts read, and at least the requested
        one."""
        return max(self.max_ts + 1, start_ts + 1, for_update_ts + 1, asked)

    def floor(self, region: Region) -> Ts:
        """Return the ts above which further locks of the region must commit."""
        return self.last if region.feed is not None else 0
