"""What can go wrong in a cluster, one method each; the words of `words` are their names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from ..events import Ts
from . import region_errors, snapshot_read
from .percolator import PREWRITE, Row
from .words import play

if TYPE_CHECKING:
    from .injected import Injected
    from .keyspace import Keyspace
    from .loop import LoopThread
    from .oracle import Oracle
    from .pd import PlacementDriver
    from .resolved import Resolved
    from .store import Store
    from .topology import Topology
    from .transactions import Transactions

T = TypeVar("T")


class Asked(Struct):
    """What `region_errors.for_feed` looks at, where no request is there to look at."""

    region_id: int
    header: Any = None


class Faults:
    """Mixed into Cluster: thread-safe, each takes effect before it returns. Regions are named by id."""

    _loop: LoopThread
    keyspace: Keyspace
    oracle: Oracle
    pd: PlacementDriver
    stores: dict[int, Store]
    injected: Injected
    resolved: Resolved
    topology: Topology
    transactions: Transactions

    def play(self, line: str) -> str:
        """One of these methods as text: see `words`."""
        return play(self, line)  # type: ignore[arg-type]

    # --- regions

    def region_of(self, raw: bytes) -> int:
        """The id of the region that holds a raw key."""
        return self._call(lambda: self.keyspace.locate_raw(raw).id)

    def split(self, raw: bytes) -> tuple[int, int]:
        """Cut a region at a raw key; the ids of the left (new) and the right one."""
        left, right = self._call(self.topology.split, raw)
        return left.id, right.id

    def pave(self, raws: Iterable[bytes]) -> list[int]:
        """Cut at many raw keys at once, before anything is written there; the new regions' ids."""
        return self._call(self.topology.pave, raws)

    def merge(self, region: int) -> int:
        """Join a region with the one right of it, which vanishes."""
        return self._call(self.topology.merge, region).id

    def transfer_leader(self, region: int, store: int = 0) -> int:
        """Let another store lead a region: the one named or the next; that one."""
        return self._call(self.topology.transfer_leader, region, store)

    def add_peer(self, region: int, store: int) -> None:
        self._call(self.topology.add_peer, region, store)

    def remove_peer(self, region: int, store: int) -> None:
        self._call(self.topology.remove_peer, region, store)

    # --- stores

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

    def slow_store(self, store: int, seconds: float) -> None:
        """Let it take so long before every answer and every message of a stream; 0 ends it."""
        self._store_of(store).slow_seconds = seconds

    def _store_of(self, store: int) -> Store:
        if store not in self.stores:
            raise ValueError(f"store: there is none with id {store}")
        return self.stores[store]

    def _stores(self, store: int) -> list[Store]:
        return [self._store_of(store)] if store else list(self.stores.values())

    # --- requests

    def fail_next(self, region: int, error: str, times: int = 1, kind: str = "") -> None:
        """Let the next requests for a region fail with that word (`region_errors`).

        `kind` is "kv", "feed" (registrations), or "" for whichever comes first.
        """
        self._call(self.injected.fail_next, region, error, times, kind)

    def fail_feed(self, region: int, error: str) -> int:
        """End the region's running subscriptions with that word now; how many there were."""

        def fail() -> int:
            held = self.topology.region(region)
            return self.topology.tell(held, region_errors.for_feed(error, held, Asked(region), held.leader))

        return self._call(fail)

    # --- streams

    def drop_streams(self, store: int = 0) -> int:
        """Cut the change feed streams of a store, or all; how many."""
        return self._each_connection(store, lambda connection: connection.end("drop"))

    def cut_streams(self, store: int = 0) -> int:
        """Cut them in the middle of their next batch of changes: its first half arrives."""
        return self._each_connection(store, lambda connection: connection.end("half"))

    def pause_streams(self, store: int = 0) -> int:
        """Let what is to be sent wait, until `resume_streams` or congestion."""
        return self._each_connection(store, lambda connection: connection.pause(True))

    def resume_streams(self, store: int = 0) -> int:
        return self._each_connection(store, lambda connection: connection.pause(False))

    def hold_scans(self, store: int = 0, pieces: int = 0) -> None:
        """Let registrations wait uninitialised until `free_scans`.

        Their scans do not begin or, with `pieces`, wait after so many (of `scan_rows` rows each).
        """
        self._call(self._hold, store, pieces)

    def free_scans(self, store: int = 0) -> None:
        self._call(self._hold, store, None)

    def _hold(self, store: int, pieces: int | None) -> None:
        for each in self._stores(store):
            each.change_data.hold(pieces)

    def pause_resolved(self) -> None:
        """Send no resolved ts by itself until `resume_resolved`."""
        self.resolved.paused = True

    def resume_resolved(self) -> None:
        self.resolved.paused = False

    def _each_connection(self, store: int, do: Callable[[Any], None]) -> int:
        def each() -> int:
            found = [c for s in self._stores(store) for c in s.change_data.connections]
            for connection in found:
                do(connection)
            return len(found)

        return self._call(each)

    # --- transactions

    def leave_lock(
        self,
        key: bytes,
        value: bytes = b"left",
        *,
        ttl_ms: int = 3_000,
        committed: bool = False,
        primary: bytes = b"",
    ) -> Ts:
        """A lock whose writer has died; its start ts.

        The primary is another key, just below it if none is given: committed, so that the lock can only be
        committed, or else locked too, so that it is rolled back once the ttl is over.
        """
        return self._loop.run(self._leave_lock(key, value, ttl_ms, committed, primary))

    async def _leave_lock(self, key: bytes, value: bytes, ttl_ms: int, committed: bool, primary: bytes) -> Ts:
        start = self.oracle.next()
        primary = primary or key[:-1] + bytes([max(key[-1] - 1, 0)]) + b"~primary"
        mutations = [("put", primary, b"primary"), ("put", key, value)]
        await self.transactions.prewrite(start, mutations, primary, ttl_ms)
        if committed:
            await self.transactions.commit(start, [primary])
        return start

    def heartbeat(self, key: bytes, ttl_ms: int = 20_000) -> None:
        """Prolong the lock on a key, which the change feed shows as a PREWRITE without its value."""

        def beat() -> None:
            region = self.keyspace.locate_raw(key)
            lock = region.shard.locks.get(key)
            if lock is None:
                raise ValueError(f"heartbeat: {key.hex()} is not locked")
            lock.attempt.ttl_ms = max(lock.attempt.ttl_ms, ttl_ms)
            row = Row(PREWRITE, key, lock.start_ts, 0, lock.op, b"", b"", lock.generation)
            self.stores[region.leader].change_data.publish(region, [row])

        self._call(beat)

    def gc(self, safe_point: Ts = 0) -> Ts:
        """Collect garbage up to `safe_point` (all of it if 0), or less where a service holds it; how far."""

        def collect() -> Ts:
            held = [
                hold.safe_point for name, hold in self.pd.safe_points.holds.items() if name != b"gc_worker"
            ]
            reached = min([safe_point or self.oracle.next(), *held])
            self.pd.safe_points.gc = max(self.pd.safe_points.gc, reached)
            for region in self.keyspace:
                if not region.empty:
                    snapshot_read.collect_garbage(region.shard, self.pd.safe_points.gc)
            return self.pd.safe_points.gc

        return self._call(collect)

    # --- PD

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

    def _call(self, work: Callable[..., T], *arguments: Any) -> T:
        return self._loop.call(work, *arguments)
