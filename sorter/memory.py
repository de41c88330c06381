"""The memory engine."""

from __future__ import annotations

from ..actors import ActorSystem, Failed, PooledRef, Target
from ..events import Sorted, Ts
from .engine import Engine
from .quota import MemoryQuota
from .sorter import SorterOptions
from .tier import Tier


class MemorySorter(Engine):
    """Keeps everything in memory until it is resolved and the Merger takes it, sorts it and puts back
    what lies above.

    Unbounded: it never slows a source down. For tests, and for streams known to be small.
    """

    def __init__(
        self,
        options: SorterOptions,
        system: ActorSystem,
        downstream: Target[Sorted],
        supervisor: PooledRef[Failed] | None,
        _memory: MemoryQuota | None = None,
    ) -> None:
        super().__init__(options, system, supervisor, Tier(None))
        self._merger = self._spawn_merger(downstream)
        self._spawn_intake()

    def acknowledge(self, ts: Ts) -> None:
        """Nothing to do: memory comes back when changes leave."""
