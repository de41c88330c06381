"""The db engine, wired."""

from __future__ import annotations

from typing import Any

from ...actors import ActorSystem, PooledRef, Target
from ...events import Ts
from ...store import Scratch, Store
from ..engine import Engine
from ..run import Table
from ..sorter import SorterOptions
from ..tier import Tier
from .compactor import Acknowledged, Compactor
from .db import DbActor
from .key import store_of
from .layout import LAYOUTS
from .reader import Reader
from .writer import Writer

_WRITES_WAITING = 8
"""In a DbActor's mailbox, 1 MiB each: memory beyond the quota."""


class DbSorter(Engine):
    """A Writer for each table, the memory tier, and a DbActor, Reader and Compactor for each store.

    What waits on what is a graph without circles: Writers on DbActors, the Merger on its downstream
    and on Readers; DbActors and Readers on nobody, since a Reader's answers always find room.
    """

    def __init__(
        self,
        options: SorterOptions,
        system: ActorSystem,
        downstream: Target,
        supervisor: PooledRef[Any] | None,
    ) -> None:
        assert options.directory is not None
        self._scratch = Scratch(options.directory)
        self._stores = [Store(self._scratch.new_store()) for _ in range(options.stores)]
        self._layout = LAYOUTS[options.layout]
        tier = Tier(options.memory_bytes, options.block_changes, options.block_bytes)

        def spawn(actor_class: type[Any], *args: Any, capacity: int = 1 << 16) -> PooledRef[Any]:
            return system.spawn(actor_class, *args, capacity=capacity, supervisor=supervisor)

        self._compactors = [spawn(Compactor, store, tier) for store in self._stores]
        self._readers = [spawn(Reader, store, self._layout, tier) for store in self._stores]
        super().__init__(options, system, downstream, supervisor, tier, self._readers)
        self._db_actors = [
            spawn(
                DbActor,
                store,
                tier,
                self._gate,
                self._disk_bytes,
                options.max_disk_bytes,
                capacity=_WRITES_WAITING,
            )
            for store in self._stores
        ]

    def _spawn_writer(self, table: Table) -> PooledRef[Any]:
        return self._system.spawn(
            Writer,
            table,
            self._tier,
            self._arrivals,
            self._merger,
            self._gate,
            self._layout,
            self._db_actors,
            supervisor=self._supervisor,
        )

    def _store_of(self, table_id: int) -> int:
        return store_of(table_id, len(self._stores))

    def _disk_bytes(self) -> int:
        return sum(store.bytes for store in self._stores)

    def acknowledge(self, ts: Ts) -> None:
        for store, compactor in zip(self._stores, self._compactors, strict=True):
            if store.bytes:
                compactor.tell(Acknowledged(ts))

    def close(self) -> None:
        super().close()
        for ref in [*self._db_actors, *self._readers, *self._compactors]:
            ref.stop()
        for store in self._stores:
            store.close()
        self._scratch.close()
