"""One table's way into the sorter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...actors import PooledRef
from ...events import Changes, KvChange
from ...store import Batch
from ..arrivals import WAKE, Arrivals
from ..gate import Gate, Part
from ..run import Run, Table, cut, measure, sort, split
from ..tier import Tier
from .db import WRITE_BYTES, Write, Written
from .layout import Layout

RUN_CHANGES: Final = 4096
"""A run holds at most this many changes ..."""
RUN_BYTES: Final = 1 << 20
"""... and about this much: the Merger opens runs as a whole."""


class Writer(Part):
    """Makes sorted runs of what the source tells it, puts them into the memory tier and sends to the
    DbActors what no longer fits there. While those are behind, or the Merger is, it takes nothing
    from its source."""

    def __init__(
        self,
        gate: Gate,
        table: Table,
        tier: Tier,
        arrivals: Arrivals,
        merger: PooledRef[Any],
        layout: Layout,
        db_actors: Sequence[PooledRef[Any]],
    ) -> None:
        super().__init__(gate)
        self._table = table
        self._tier = tier
        self._arrivals = arrivals
        self._merger = merger
        self._layout = layout
        self._db_actors = db_actors

    def on_receive(self, message: Changes) -> None:
        """An ask is answered once the changes, and all told before, are in the sorter's hands."""
        if self._gate.is_closed or self._table.removed:
            return
        runs = self._runs(message.changes) if message.changes else []
        spilled = self._tier.add(runs) if runs else []
        if self._arrivals.post(self._table, runs, message.resolved, self.clock.now()):
            self.send(self._merger, WAKE)
        if spilled:
            self._spill(spilled)
        if self._gate.is_needed():
            self._gate.hold(self)

    def _runs(self, changes: list[KvChange]) -> list[Run]:
        size = measure(changes)  # before sorting: in the order that they lie in memory
        single = sort(changes)
        return cut(self._table, changes, size, single, RUN_CHANGES, RUN_BYTES)

    def _spill(self, runs: list[Run]) -> None:
        by_store: dict[int, list[Run]] = {}
        for run in runs:
            by_store.setdefault(run.table.store, []).append(run)
        for store, its_runs in by_store.items():
            for part in split(its_runs, WRITE_BYTES):
                self.send(self._db_actors[store], self._write(part))

    def _write(self, runs: list[Run]) -> Write:
        # Here, and not in the DbActor: what has just been sorted is still in the processor's cache.
        batch = Batch()
        written = []
        for run in runs:
            changes = run.changes  # once: the Merger may take it at any time
            if changes is not None:
                before = batch.bytes
                lower, upper, keys = self._layout.put(batch, run, changes)
                written.append(Written(run, lower, upper, keys, batch.bytes - before))
        return Write(batch, written)
