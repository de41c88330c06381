"""The unified engine, wired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...actors import ActorSystem, Failed, PooledRef, Target
from ...events import Sorted, Ts
from ...store.scratch import Scratch
from ..admission import AdmissionControl
from ..arrivals import Arrivals, Uid, Wake
from ..engine import Engine
from ..intake import Intake
from ..quota import MemoryQuota
from ..run import SortRun
from ..sorter import SorterOptions
from ..tier import Tier
from .file import FileReader, FileWriter
from .heap import HEAP_BYTES, Broadcast, FlushNow, HeapSorter, ResolvedBarrier
from .pool import BackEndPool

HEAPS: Final = 4
"""The original's num-concurrent-worker. They are shared by all tables."""

WRITERS: Final = 2
"""Of files. The original has 2 x 16 threads; these are actors, and wait for one disk."""

RUNS: Final = 16
"""The capacity of a HeapSorter's mailbox, in runs of at most 1 MiB."""


class UnifiedSorter(Engine):
    """One Intake that deals runs to the HeapSorters in turn, a pool of memory and files, FileWriters, a
    FileReader and the Merger.

    The Intake waits on HeapSorters, these on FileWriters, the Merger on its downstream and on the
    FileReader; FileWriters and the FileReader on nobody.
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
        self._scratch = Scratch(options.directory)
        tier = Tier(options.memory_bytes, shared=memory)
        super().__init__(options, system, supervisor, tier)
        self._pool = BackEndPool(self._scratch, tier, options.max_disk_bytes)
        try:
            self._spawn_all(options, tier, downstream)
        except BaseException:
            tier.close()
            self._scratch.close()
            raise

    def _spawn_all(self, options: SorterOptions, tier: Tier, downstream: Target[Sorted]) -> None:
        pool, barrier = self._pool, ResolvedBarrier(HEAPS)
        self._reader = self._spawn(FileReader, tier, pool)
        self._merger = self._spawn_merger(downstream, [self._reader])
        self._file_writers = [
            self._spawn(FileWriter, tier, pool, self._merger, capacity=8) for _ in range(WRITERS)
        ]
        heap_bytes = min(HEAP_BYTES, max(1, options.memory_bytes // (4 * HEAPS)))
        block = options.block_changes, options.block_bytes
        outside = tier, self._arrivals, pool, self._merger, self._file_writers, heap_bytes, block
        self._heaps = [
            self._spawn(HeapSorter, number, barrier, *outside, capacity=RUNS) for number in range(HEAPS)
        ]
        intake = self._spawn(Dealer, tier, self._arrivals, self._merger, self._heaps, barrier, pool)
        self._set_intake(intake)

    def remove_table(self, table_id: int) -> None:
        super().remove_table(table_id)
        for heap in self._heaps:
            heap.offer(FlushNow())  # if it is full, it will flush soon

    def _memory_bytes(self) -> int:
        return super()._memory_bytes() + self._pool.heap_bytes

    def _disk_bytes(self) -> int:
        return self._pool.disk_bytes

    def acknowledge(self, ts: Ts) -> None:  # noqa: ARG002
        """Space comes back as it is read; here what removed tables had."""
        self._pool.sweep()

    def close(self) -> None:
        super().close()
        for heap in self._heaps:
            heap.stop()
        for writer in self._file_writers:
            writer.stop()
        self._reader.stop()
        self._pool.close()
        self._scratch.close()


class Dealer(Intake):
    """An Intake that deals runs to the heaps in turn and broadcasts what is resolved to all of them."""

    def __init__(
        self,
        gate: AdmissionControl,
        tier: Tier,
        arrivals: Arrivals,
        merger: PooledRef[Wake],
        heaps: Sequence[PooledRef[SortRun | Broadcast | FlushNow]],
        barrier: ResolvedBarrier,
        pool: BackEndPool,
    ) -> None:
        super().__init__(gate, tier, arrivals, merger, None)
        self._heaps = heaps
        self._barrier = barrier
        self._pool = pool
        self._next = 0

    def _hand_over(self, runs: list[SortRun], resolved: dict[Uid, Ts]) -> None:
        for run in runs:
            self._pool.entered_heap(run.bytes)
            self.send(self._heaps[self._next], run)
            self._next = (self._next + 1) % len(self._heaps)
        if resolved:
            broadcast = self._barrier.begin(resolved)
            for heap in self._heaps:
                self.send(heap, broadcast)
