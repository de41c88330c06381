"""The db engine, wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...actors import ActorSystem, Failed, PooledRef, Target
from ...events import Sorted, Ts
from ...store.plan import CompactionPlan, StepOutcome
from ...store.scratch import Scratch
from ...store.store import Store
from ..engine import Engine
from ..keyspace import SortKeyspace
from ..quota import MemoryQuota
from ..sorter import SorterOptions
from ..tier import Tier
from .compactor import CarryOut, Compactor, PlanOutcomes, Unneeded
from .db import DbActor
from .key import store_of
from .layout import LAYOUTS
from .reader import Reader
from .spill import Spill

WRITES: Final = 8
"""The capacity of a DbActor's mailbox. A Write has 1 MiB."""


class DbSorter(Engine):
    """A Writer for each table, one Intake, the memory tier, and a DbActor, Reader and Compactor for each
    store.

    What waits on what is a graph without circles: the Intake on DbActors, the Merger on its downstream
    and on Readers; DbActors and Readers on nobody, since a Reader's answers always find room.
    """

    def __init__(
        self,
        options: SorterOptions,
        system: ActorSystem,
        downstream: Target[Sorted],
        supervisor: PooledRef[Failed] | None,
        memory: MemoryQuota | None = None,
    ) -> None:
        assert options.directory is not None
        self._layout = LAYOUTS[options.layout]
        self._scratch = Scratch(options.directory)
        tier = Tier(options.memory_bytes, options.block_changes, options.block_bytes, memory)
        super().__init__(options, system, supervisor, tier)
        self._stores = [Store(self._scratch.new_store()) for _ in range(options.stores)]
        try:
            self._spawn_all(options, tier, downstream)
        except BaseException:
            tier.close()
            self._scratch.close()
            raise

    def _spawn_all(self, options: SorterOptions, tier: Tier, downstream: Target[Sorted]) -> None:
        self._compactors = [self._spawn(Compactor, store, tier) for store in self._stores]
        self._readers = [self._spawn(Reader, store, self._layout, tier) for store in self._stores]
        self._merger = self._spawn_merger(downstream, self._readers)
        quota = options.max_disk_bytes
        self._db_actors = [
            self._spawn(DbActor, store, tier, self._merger, self._disk_bytes, quota, capacity=WRITES)
            for store in self._stores
        ]
        self._spawn_intake(Spill(self._layout, self._db_actors))

    def _new_table(self, table_id: int, uid: int) -> SortKeyspace:
        store = store_of(table_id, len(self._stores))
        return SortKeyspace(table_id, uid, store, shares_runs=self._layout.shares_runs)

    def _disk_bytes(self) -> int:
        return sum(store.bytes for store in self._stores)

    def acknowledge(self, ts: Ts) -> None:
        for store, compactor in zip(self._stores, self._compactors, strict=True):
            if store.bytes:
                compactor.offer(Unneeded(ts))  # if it is full, a later one says more

    def compact(self, plan: CompactionPlan, done: Callable[[list[StepOutcome]], object]) -> None:
        answers = PlanOutcomes(len(self._compactors), done)
        for compactor in self._compactors:
            compactor.post(CarryOut(plan, answers.add))

    def close(self) -> None:
        super().close()
        for db_actor in self._db_actors:
            db_actor.stop()
        for reader in self._readers:
            reader.stop()
        for compactor in self._compactors:
            compactor.stop()
        for store in self._stores:
            store.close()
        self._scratch.close()
