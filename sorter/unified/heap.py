"""Heap sorters: a few heaps for all tables, flushed to the back ends in sorted pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Final, assert_never

from msgspec import Struct

from ...actors import PooledRef
from ...codec.blocks import merge
from ...events import Ts
from ..admission import AdmissionControl, SorterActor
from ..arrivals import WAKE, Arrivals, Uid, Wake
from ..run import SortRun, in_parts, runs_of, tables_of
from ..tier import Tier
from .file import FlushRuns
from .pool import BackEndPool

FLUSH_BYTES: Final = 1 << 20
"""Bytes of a FlushTask, about."""

HEAP_BYTES: Final = 8 << 20
"""Bytes at which a heap is flushed, resolved or not. The original waits for 128 MiB."""


class Broadcast(Struct, frozen=True):
    """To every HeapSorter: flush everything received before this, then report it."""

    number: int


class FlushNow(Struct, frozen=True):
    """To a HeapSorter: flush, because a table was removed."""


class ResolvedBarrier:
    """Resolved timestamps on their way through the heaps: one takes effect when the last heap has flushed."""

    def __init__(self, heaps: int) -> None:
        self._lock = Lock()
        self._passed = [0] * heaps
        self._number = 0
        self._waiting: deque[tuple[int, dict[Uid, Ts]]] = deque()

    def begin(self, resolved: dict[Uid, Ts]) -> Broadcast:
        with self._lock:
            self._number += 1
            self._waiting.append((self._number, resolved))
            return Broadcast(self._number)

    def pass_by(self, heap: int, number: int) -> dict[Uid, Ts]:
        """Note that a heap has flushed for a broadcast; return the resolved ts that all heaps have passed."""
        resolved: dict[Uid, Ts] = {}
        with self._lock:
            self._passed[heap] = number
            least = min(self._passed)
            while self._waiting and self._waiting[0][0] <= least:
                resolved.update(self._waiting.popleft()[1])
        return resolved


class HeapSorter(SorterActor[SortRun | Broadcast | FlushNow]):
    """Collects runs and flushes them sorted: on a broadcast, or when they are large.

    Blocks that are merged when they are flushed do what a heap does, much cheaper.
    """

    def __init__(
        self,
        gate: AdmissionControl,
        number: int,
        barrier: ResolvedBarrier,
        tier: Tier,
        arrivals: Arrivals,
        pool: BackEndPool,
        merger: PooledRef[Wake],
        writers: Sequence[PooledRef[FlushRuns]],
        heap_bytes: int,
        block: tuple[int, int],
    ) -> None:
        super().__init__(gate)
        self._number = number
        self._barrier = barrier
        self._tier = tier
        self._arrivals = arrivals
        self._pool = pool
        self._merger = merger
        self._writers = writers
        self._heap_bytes = heap_bytes
        self._block = block
        self._runs: list[SortRun] = []
        self._bytes = 0

    def on_receive(self, message: SortRun | Broadcast | FlushNow) -> None:
        if self._gate.is_closed:
            return
        match message:
            case SortRun():
                self._runs.append(message)
                self._bytes += message.bytes
                if self._bytes >= self._heap_bytes:
                    self._flush()
            case Broadcast(number):
                self._flush()
                resolved = self._barrier.pass_by(self._number, number)
                if resolved and self._arrivals.post([], resolved):
                    self.send(self._merger, WAKE)
            case FlushNow():
                self._flush()
            case _:
                assert_never(message)

    def _flush(self) -> None:
        runs, self._runs = self._runs, []
        self._bytes = 0
        self._pool.left_heap(sum(run.bytes for run in runs))
        pieces = self._sorted(runs) if runs else []
        if not pieces:
            return
        size = sum(piece.bytes for piece in pieces)
        in_memory = self._pool.has_memory_for(size)
        for piece in pieces:
            self._tier.hold(piece)
        self._arrivals.post(pieces, {})
        if not in_memory:
            target = self._writers[self._number % len(self._writers)]
            for part in in_parts(self._tier.leave(pieces), FLUSH_BYTES):
                self.send(target, FlushRuns(part))

    def _sorted(self, runs: list[SortRun]) -> list[SortRun]:
        merged = merge([run.without_removed(run.block) for run in runs if run.block is not None])
        return runs_of(tables_of(runs), merged, *self._block)
