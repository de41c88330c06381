"""An emulated TiDB cluster as a world's source."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, Final

from ...actors import Clock
from ...codec.tidb.key import record_key
from ...emulator import Rejected
from ...emulator.options import CommitMode
from ...emulator.sql.sql import Tidb
from ...emulator.sql.transaction import SqlTransaction
from ...engine.opening import source_context
from ...engine.options import FeedOptions
from ...events import Checkpoint, Ts
from ...puller.tikv.options import TikvOptions
from ...sources.source import Source
from ...sources.tikv import TikvSource
from .channel import MemoryTransport
from .cluster_faults import ClusterFaults
from .loop import ClusterLoop
from .machine import Machine
from .plan import Step
from .scheduler import Scheduler
from .upstream import Surroundings
from .writers import KEYS, SCHEMA, Writers

HELD_SECONDS: Final = 2.5
"""Maximum time for which a slow writer holds its locks."""
GC_SECONDS: Final = 1.0
"""Interval at which the feed renews its safe point."""


class Cluster:
    def __init__(self, around: Surroundings) -> None:
        plan, scheduler = around.plan, around.scheduler
        self._plan = plan
        self._network = around.network
        self._loop = ClusterLoop("cluster", around.host, scheduler)
        self._tidb = Tidb(
            stores=3,
            seed=plan.seed,
            clock=scheduler.clock,
            loop=self._loop,
            serve=around.network.serve,
            pd_members=plan.pd_members,
            coarse_resolved=plan.coarse_resolved,
            filter_span=plan.filter_span,
            tick_seconds=plan.tick_seconds,
            scan_rows=plan.scan_rows,
        )
        database = _Database(self._tidb, scheduler, plan.commit_mode)
        self.writers = Writers(database, plan, scheduler, around.truth, around.note)
        self._faults = ClusterFaults(
            self._tidb, around.network, scheduler, around.host, self._split_keys, around.note
        )

    def create(self, random: Random) -> None:
        self.writers.create(self._plan.tables, self._plan.rows, random)
        for _ in range(self._plan.regions):
            self._faults.split(random.getrandbits(32))

    def _split_keys(self) -> list[bytes]:
        """Return raw keys at which regions may be split."""
        keys = []
        for name in self.writers.tables:
            if name != f"{SCHEMA}.pair":
                with suppress(ValueError):  # it is just being renamed
                    table_id = self._tidb.schema.table(name).info.id
                    keys += [record_key(table_id, handle) for handle in (0, KEYS // 2)]
        return keys

    def options(self) -> dict[str, Any]:
        return {
            "url": f"tikv://{self._tidb.pd_address}",
            "scan_page": self._plan.scan_page,
            "region_batch": self._plan.region_batch,
            "region_scan_limit": self._plan.region_scan_limit,
            "gc_interval_seconds": GC_SECONDS,
        }

    def open_on(self, machine: Machine, options: FeedOptions, clock: Clock) -> Source:
        context = source_context(options, clock)
        assert isinstance(options.source.options, TikvOptions)
        return TikvSource(
            replace(options.source.options, max_prewrite_bytes=self._plan.prewrite_bytes),
            context.tables,
            context.feed,
            context.directory,
            clock,
            transport=MemoryTransport(self._network, machine),
        )

    def perform(self, step: Step) -> None:
        self._faults.perform(step)

    def calm(self) -> None:
        self._faults.calm()

    def as_of(self, checkpoint: Checkpoint) -> Ts:
        return max(checkpoint.ts, int(checkpoint.position or 0))

    def end(self) -> None:
        self._loop._end()


class _Database:
    """The cluster as writers see it."""

    name = "tidb"

    def __init__(self, tidb: Tidb, scheduler: Scheduler, mode: CommitMode) -> None:
        self._tidb = tidb
        self._scheduler = scheduler
        self._mode = mode

    def execute(self, statement: str) -> Ts:
        return self._tidb.execute(statement)

    def begin(self, word: str, random: Random) -> SqlTransaction:
        storage = _Storage(self._tidb, self._scheduler, word, self._mode, random)
        return SqlTransaction(storage, self._tidb.schema, self._tidb.pumps)

    def commit(self, txn: SqlTransaction) -> Ts:
        txn.commit()
        return txn.commit_ts


class _Storage:
    """Writes a transaction at once, slowly, or as a client that dies on the way."""

    def __init__(self, tidb: Tidb, scheduler: Scheduler, word: str, mode: CommitMode, random: Random) -> None:
        self._tidb = tidb
        self._scheduler = scheduler
        self._word = word
        self._mode = mode
        self._random = random

    def tso(self) -> Ts:
        return self._tidb.tso()

    def read(self, key: bytes, ts: Ts) -> bytes | None:
        return self._tidb.read(key, ts)

    def write(self, mutations: list[tuple[str, bytes, bytes]], *, start_ts: Ts = 0) -> Ts:
        if self._word == "write":
            return self._tidb.write(mutations, start_ts=start_ts, mode=self._mode)
        keys = sorted(key for _, key, _ in mutations)
        primary = keys[0]
        try:
            self._tidb.prewrite(start_ts, mutations, primary=primary, ttl_ms=500)
        except Rejected:
            self._tidb.rollback(start_ts, keys)
            raise
        held = self._random.random() * HELD_SECONDS
        self._scheduler.sleep(held)
        if self._word == "slow write":
            return self._tidb.commit(start_ts, keys)
        if self._random.random() < 0.5:
            return self._tidb.commit(start_ts, [primary])
        return 0
