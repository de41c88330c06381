"""From runs to what DbActors write."""

from __future__ import annotations

from collections.abc import Sequence

from ...actors import PooledActor, PooledRef
from ...store.batch import PairBatch
from ..arrivals import Wake
from ..run import SortRun, in_parts
from .db import WRITE_BYTES, Write, Written
from .layout import Layout


class Spill:
    """Called in the Intake's turns."""

    def __init__(self, layout: Layout, db_actors: Sequence[PooledRef[Write]]) -> None:
        self._layout = layout
        self._db_actors = db_actors

    def __call__(self, runs: list[SortRun], sender: PooledActor[Wake]) -> None:
        by_store: dict[int, list[SortRun]] = {}
        for run in runs:
            by_store.setdefault(run.tables[0].store, []).append(run)
        for store, its_runs in by_store.items():
            for part in in_parts(its_runs, WRITE_BYTES):
                sender.send(self._db_actors[store], self._write(part))

    def _write(self, runs: list[SortRun]) -> Write:
        # Here, and not in the DbActor: what has just been merged is still in the processor's cache.
        batch = PairBatch()
        written = []
        for run in runs:
            assert run.block is not None
            before = batch.bytes
            lower, upper, keys = self._layout.put(batch, run, run.block)
            written.append(Written(run, lower, upper, keys, batch.bytes - before))
        return Write(batch, written)
