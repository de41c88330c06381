"""The memory engine: two lists a table, what is resolved and what isn't."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from ...actors import ActorSystem, PooledRef, Target
from ...events import Changes, KvChange, Ts
from ..arrivals import WAKE, Arrivals
from ..engine import WRITER_MESSAGES, Engine
from ..gate import Gate, Part
from ..run import Run, Table, measure, sort
from ..sorter import SorterOptions
from ..tier import Tier


class MemorySorter(Engine):
    """Keeps everything in memory until it is resolved and the Merger takes it.

    Unbounded: it never slows a source down. For tests, and for streams known to be small.
    """

    def __init__(
        self,
        options: SorterOptions,
        system: ActorSystem,
        downstream: Target,
        supervisor: PooledRef[Any] | None,
    ) -> None:
        super().__init__(options, system, supervisor, Tier(None))
        self._merger = self._spawn_merger(downstream)

    def _spawn_writer(self, table: Table, name: str) -> PooledRef[Any]:
        return self._spawn(
            Writer, table, self._tier, self._arrivals, self._merger, capacity=WRITER_MESSAGES, name=name
        )

    def _store_of(self, table_id: int) -> int:  # noqa: ARG002
        return 0

    def acknowledge(self, ts: Ts) -> None:
        """Nothing to do: memory comes back when changes leave."""


class Writer(Part):
    """One table: what came since the last resolved ts, and the sorted rest above that."""

    def __init__(
        self, gate: Gate, table: Table, tier: Tier, arrivals: Arrivals, merger: PooledRef[Any]
    ) -> None:
        super().__init__(gate)
        self._table = table
        self._tier = tier
        self._arrivals = arrivals
        self._merger = merger
        self._unsorted: list[KvChange] = []
        self._rest: list[KvChange] = []

    def on_receive(self, message: Changes) -> None:
        """An ask: answered once the changes, and all told before, are in the sorter's hands."""
        self.on_receive_batch([message])

    def on_receive_batch(self, messages: Sequence[Changes]) -> None:
        if self._gate.is_closed or self._table.removed:
            return
        resolved = self._table.resolved
        for message in messages:
            self._unsorted += message.changes
            resolved = max(resolved, message.resolved)
        if resolved > self._table.resolved:
            self._release(resolved)

    def _release(self, resolved: Ts) -> None:
        """Merge what is new with the sorted rest, and hand over what is resolved."""
        merged = self._rest + self._unsorted
        single = sort(merged)
        self._unsorted = []
        end = bisect_left(merged, KvChange(resolved + 1, 0, 0, b"", b""))
        self._rest = merged[end:]
        runs = []
        if end:
            ready = merged[:end]
            runs = [Run(self._table, ready, measure(ready), single)]
            self._tier.add(runs)
        if self._arrivals.post(self._table, runs, resolved, self.clock.now()):
            self.send(self._merger, WAKE)
