"""Stores and PD that are unavailable or slow, and PD's clock."""

from __future__ import annotations

import asyncio

from ...codec.proto import metapb
from ..parts import Parts
from ..store import TikvStore


class ServerFaults(Parts):
    """Faults of servers. Thread-safe; each has taken effect when it returns."""

    def store_down(self, store: int) -> None:
        """Stop a store: close its port and cut its streams. Others lead its regions where possible."""
        self._loop.run(self._store_down(self._store_of(store)))

    async def _store_down(self, store: TikvStore) -> None:
        await store.server.stop()
        self.topology.abandon(store.id)

    def store_up(self, store: int) -> None:
        """Start a store again, on its former port."""
        if not self._store_of(store).server.up:
            self._loop.run(self.stores[store].server.start())

    def remove_store(self, store: int) -> None:
        """Remove a store permanently: others lead its regions, in PD it is a tombstone."""
        self.store_down(store)
        self._call(self._bury, store)

    def _bury(self, store: int) -> None:
        self.pd.stores[store].state = metapb.StoreState.Tombstone
        self.pd.stores[store].node_state = metapb.NodeState.Removed

    def slow_store(self, store: int, seconds: float) -> None:
        """Delay every answer and every message of a stream by `seconds`; 0 ends it."""
        self._store_of(store).slow_seconds = seconds

    def pd_leader(self, member: int = -1) -> int:
        """Make another member of PD lead, the given one (from 0) or the next; return its index."""
        members = len(self.pd.members)
        self.pd.leader = (self.pd.leader + 1) % members if member < 0 else member
        return self.pd.leader

    def pd_down(self) -> None:
        """Stop PD: close the ports of all members."""
        self._loop.run(self._pd_down())

    async def _pd_down(self) -> None:
        await asyncio.gather(*(member.server.stop() for member in self.pd.members))

    def pd_up(self) -> None:
        for member in self.pd.members:
            if not member.server.up:
                self._loop.run(member.server.start())

    def jump_clock(self, seconds: float) -> None:
        """Move PD's clock by `seconds`; timestamps never go back."""
        self._call(self.oracle.jump, seconds)
