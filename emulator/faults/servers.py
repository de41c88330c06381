"""Stores and PD that are away or slow, and PD's clock. Thread-safe."""

from __future__ import annotations

import asyncio

from ...codec.proto import metapb
from ..parts import Parts
from ..store import Store


class ServerFaults(Parts):
    """Each has taken effect when it returns."""

    def store_down(self, store: int) -> None:
        """Close its port and cut its streams; others lead its regions where they can."""
        self._loop.run(self._store_down(self._store_of(store)))

    async def _store_down(self, store: Store) -> None:
        await store.server.stop()
        self.topology.abandon(store.id)

    def store_up(self, store: int) -> None:
        """Open it again, on the port it had."""
        if not self._store_of(store).server.up:
            self._loop.run(self.stores[store].server.start())

    def remove_store(self, store: int) -> None:
        """Take it out of the cluster for good: others lead its regions, to PD it is a tombstone."""
        self.store_down(store)
        self._call(self._bury, store)

    def _bury(self, store: int) -> None:
        self.pd.stores[store].state = metapb.StoreState.Tombstone
        self.pd.stores[store].node_state = metapb.NodeState.Removed

    def slow_store(self, store: int, seconds: float) -> None:
        """Let it take so long before every answer and every message of a stream; 0 ends it."""
        self._store_of(store).slow_seconds = seconds

    def pd_leader(self, member: int = -1) -> int:
        """Let another member lead: the one named, counting from 0, or the next; that one."""
        members = len(self.pd.members)
        self.pd.leader = (self.pd.leader + 1) % members if member < 0 else member
        return self.pd.leader

    def pd_down(self) -> None:
        """Close the ports of all members."""
        self._loop.run(self._pd_down())

    async def _pd_down(self) -> None:
        await asyncio.gather(*(member.server.stop() for member in self.pd.members))

    def pd_up(self) -> None:
        for member in self.pd.members:
            if not member.server.up:
                self._loop.run(member.server.start())

    def jump_clock(self, seconds: float) -> None:
        """Let PD's clock step; timestamps never go back."""
        self._call(self.oracle.jump, seconds)
