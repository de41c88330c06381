"""Resolved ts: from time to time each store tells how far its regions are known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..events import Ts
from .keyspace import Keyspace
from .oracle import Oracle
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
        self.paused = False

    async def tick_forever(self, seconds: float | None) -> None:
        while seconds is not None:
            await asyncio.sleep(seconds)
            if not self.paused:
                self.tick()

    def tick(self) -> Ts:
        """Send now; the highest one sent. A region with locks is held below the oldest."""
        now = self.last = self._oracle.next()
        held = {region.id: region.shard.resolved(now) for region in self._keyspace.locked.values()}
        for feed in self.feeds:
            feed.resolve(now, held)
        return now

    def floor(self, region: Region) -> Ts:
        """What is locked in the region from now on must commit above this."""
        return self.last if region.feed is not None else 0
