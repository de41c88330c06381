"""From runs to what DbActors write."""

from __future__ import annotations

from collections.abc import Sequence

from ...actors import PooledActor, PooledRef
from ...store.batch import Batch
from ..arrivals import Wake
from ..cut import split
from ..run import Run
from .db import WRITE_BYTES, Write, Written
from .layout import Layout


class Spill:
    """Called in the Intake's turns."""

    def __init__(self, layout: Layout, db_actors: Sequence[PooledRef[Write]]) -> None:
        self._layout = layout
        self._db_actors = db_actors

    def __call__(self, runs: list[Run], sender: PooledActor[Wake]) -> None:
        by_store: dict[int, list[Run]] = {}
        for run in runs:
            by_store.setdefault(run.tables[0].store, []).append(run)
        for store, its_runs in by_store.items():
            for part in split(its_runs, WRITE_BYTES):
                sender.send(self._db_actors[store], self._write(part))

    def _write(self, runs: list[Run]) -> Write:
        # Here, and not in the DbActor: what has just been sorted is still in the processor's cache.
        batch = Batch()
        written = []
        for run in runs:
            assert run.changes is not None
            before = batch.bytes
            lower, upper, keys = self._layout.put(batch, run, run.changes, run.owners)
            run.changes = run.owners = None  # still in the cache: freeing them later costs twice as much
            written.append(Written(run, lower, upper, keys, batch.bytes - before))
        return Write(batch, written)
