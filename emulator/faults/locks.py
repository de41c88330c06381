"""Remains of writers: locks, heartbeats, garbage."""

from __future__ import annotations

from ...events import Ts
from .. import snapshot_read
from ..parts import Parts
from ..percolator import PREWRITE, Row


class LockFaults(Parts):
    """Faults of locks. Thread-safe; keys are raw."""

    def leave_lock(
        self,
        key: bytes,
        value: bytes = b"left",
        *,
        ttl_ms: int = 3_000,
        committed: bool = False,
        primary: bytes = b"",
    ) -> Ts:
        """Leave a lock whose writer has died; return its start ts.

        The primary is another key, by default just below it: committed, so that the lock can only be
        committed, or also locked, so that it is rolled back after the ttl.
        """
        return self._loop.run(self._leave_lock(key, value, ttl_ms, committed, primary))

    async def _leave_lock(self, key: bytes, value: bytes, ttl_ms: int, committed: bool, primary: bytes) -> Ts:
        start = self.oracle.next()
        primary = primary or _below(key)
        mutations = [("put", primary, b"primary"), ("put", key, value)]
        await self.transactions.prewrite(start, mutations, primary, ttl_ms)
        if committed:
            await self.transactions.commit(start, [primary])
        return start

    def leave_async_commit(
        self, key: bytes, value: bytes = b"left", *, ttl_ms: int = 3_000, complete: bool = False
    ) -> Ts:
        """Leave locks of an async commit whose writer has died; return its start ts.

        The primary is another key, just below it. If the commit is complete, both are locked and the
        transaction is committed, whoever resolves it; otherwise only the primary is locked, and it is rolled
        back.
        """
        return self._loop.run(self._leave_async_commit(key, value, ttl_ms, complete))

    async def _leave_async_commit(self, key: bytes, value: bytes, ttl_ms: int, complete: bool) -> Ts:
        start = self.oracle.next()
        primary = _below(key)
        mutations = [("put", primary, b"primary"), ("put", key, value)]
        await self.transactions.prewrite(
            start, mutations if complete else mutations[:1], primary, ttl_ms, secondaries=[key]
        )
        return start

    def heartbeat(self, key: bytes, ttl_ms: int = 20_000) -> None:
        """Extend the TTL of a lock, which the change feed shows as a PREWRITE without its value."""

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
        """Collect garbage up to `safe_point` (0: all of it), or less if a service holds it; return the ts
        reached."""

        def collect() -> Ts:
            self.pd.safe_points.least(self.oracle.now_ms() / 1000)  # removes expired ones
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


def _below(key: bytes) -> bytes:
    return key[:-1] + bytes([max(key[-1] - 1, 0)]) + b"~primary"
