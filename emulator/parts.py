"""The parts of a cluster, for mixins that add methods to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .faults.injected import Injected
from .keyspace import Keyspace
from .loop import LoopThread
from .oracle import Oracle
from .pd import PlacementDriver
from .pumps import Pumps
from .resolved import Resolved
from .store import TikvStore
from .topology import Topology
from .transactions import Transactions

T = TypeVar("T")


class Parts:
    """Parts of a cluster, set by Cluster. To be used in the loop's thread only, except for reading."""

    _loop: LoopThread
    keyspace: Keyspace
    oracle: Oracle
    pd: PlacementDriver
    pumps: Pumps
    stores: dict[int, TikvStore]
    injected: Injected
    resolved: Resolved
    topology: Topology
    transactions: Transactions

    def _call(self, work: Callable[..., T], *arguments: object) -> T:
        return self._loop.call(work, *arguments)

    def _store_of(self, store: int) -> TikvStore:
        if store not in self.stores:
            raise ValueError(f"store: there is none with id {store}")
        return self.stores[store]

    def _stores(self, store: int) -> list[TikvStore]:
        return [self._store_of(store)] if store else list(self.stores.values())
