"""A sink that applies transactions by several connections, each exactly once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NoReturn

from ....dialects.worker import WorkerDatabase
from ....errors import SinkError, TidemillError
from ....events import Batch, Checkpoint, Table, Transaction, Wait
from ...sink import Sink, SinkStatistics, SinkTraits, WorkersProgress
from ..letters.writer import LetterWriter
from ..sql import SqlSink
from ..syncpoints import SyncpointWriter
from .keys import RowKeys
from .pool import Pool
from .unit import Unit, units_of

PORTION_ROWS: Final = 1_000
"""Minimum number of rows that the workers are given at once, while the keys of the next ones are found."""


class ParallelSqlSink(Sink):
    """Applies plain transactions in the order of their keys; everything else in commit order, alone.

    Schema changes, snapshots, transactions in several batches and tables at positions of their own go
    through a SqlSink, once everything before them is durable.
    """

    def __init__(
        self,
        name: str,
        target: WorkerDatabase,
        workers: int,
        now: Callable[[], float],
        letters: LetterWriter | None = None,
        time: Callable[[], float] = float,
        *,
        copies_definitions: bool = False,
        merges: bool = False,
        syncpoints: SyncpointWriter | None = None,
    ) -> None:
        """`letters` keeps rejected changes; without it the first one is an error. `time` is in Unix
        seconds. With `merges` the changes of a row in one SQL transaction are applied as one."""
        self._merges = merges
        self.name = name
        self.target = target.identity
        self._database = target
        self._count = workers
        self._now = now
        self._letters = letters
        self._time = time
        self._serial = SqlSink(
            name,
            target,
            target.store,
            letters,
            time,
            copies_definitions=copies_definitions,
            merges=merges,
            syncpoints=syncpoints,
        )
        self.safe_mode = self._serial.safe_mode
        self._pool: Pool | None = None
        self._is_parallel = False  # True while the pool has the transactions, and not the SqlSink
        self._keys: dict[int, tuple[Table, RowKeys]] = {}  # by the table's id()
        self._seq = 0

    @property
    def traits(self) -> SinkTraits:
        return replace(self._serial.traits, is_pipelined=True)

    def open(self) -> Checkpoint | None:
        return self._serial.open()

    def write(self, batch: Batch) -> None:
        try:
            if not self._serial.is_open:
                self.open()
            if self._serial.syncpoint_is_due:
                self._settle()
                self._serial.flush()
            if self._is_plain(batch):
                self._dispatch(batch)
                return
            self._settle()
            if batch.items and batch.items[0].__class__ is not Transaction:
                self._keys.clear()
        except Exception as error:
            self._fail(error)
        self._serial.write(batch)

    def flush(self) -> Checkpoint | None:
        if self._pool is None or not self._is_parallel:
            return self._serial.flush()
        try:
            return self._pool.settle()
        except Exception as error:
            self._fail(error)

    def progress(self) -> Checkpoint | None:
        if self._pool is None or not self._is_parallel:
            return self._serial.flush()
        try:
            self._pool.save()
            return self._pool.saved
        except Exception as error:
            self._fail(error)

    def has_table(self, schema: str, table: str) -> bool:
        return self._serial.has_table(schema, table)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        self._is_parallel = False
        self._keys.clear()
        self._serial.close()

    def waits(self) -> list[Wait]:
        """Return what its workers wait for. Any thread."""
        pool = self._pool
        return [] if pool is None else pool.waits()

    def statistics(self) -> SinkStatistics:
        pool = self._pool
        workers = WorkersProgress(0, 0, self._count, 0) if pool is None else pool.progress
        return replace(self._serial.statistics(), workers=workers)

    def _is_plain(self, batch: Batch) -> bool:
        checkpoint, durable = batch.checkpoint, self._serial.durable
        if checkpoint is None or durable is None or self._serial.is_inside:
            return False
        if not (checkpoint.is_uniform and durable.is_uniform) or checkpoint.loading != durable.loading:
            return False
        return all(item.__class__ is Transaction and item.chunk is None for item in batch.items)

    def _dispatch(self, batch: Batch) -> None:
        assert batch.checkpoint is not None
        pool = self._running_pool()
        saved, applied = pool.saved, self._serial.applied
        units: list[tuple[Unit, bool]] = []
        rows = 0
        now = self._now()
        for items in units_of(batch.items):
            last = items[-1]
            ts = last.commit_ts
            begun = batch.checkpoint
            checkpoint = Checkpoint(
                ts, last.position, begun.loading, begun.source, begun.owner, stages=begun.stages
            )
            self._seq += 1
            if ts <= saved.ts:
                continue
            runs = [run for item in items for run in item.runs]
            if not runs or ts in applied:
                units.append((Unit(self._seq, ts, [], checkpoint, since=now), True))
                continue
            writes: set[int | None] = set()
            reads: set[int | None] = set()
            for run in runs:
                self._keys_of(run.table).add(run, writes, reads)
            writes.discard(None)
            reads.discard(None)
            unit = Unit(self._seq, ts, runs, checkpoint, writes, reads, now)  # type: ignore[arg-type]
            units.append((unit, False))
            rows += unit.rows
            if rows >= PORTION_ROWS:
                pool.add(units)
                units, rows = [], 0
        pool.add(units)

    def _keys_of(self, table: Table) -> RowKeys:
        entry = self._keys.get(id(table))
        if entry is None:
            entry = self._keys[id(table)] = table, RowKeys(table, self._database.rows.keys_of(table))
        return entry[1]

    def _running_pool(self) -> Pool:
        """Return the pool, which goes on where the SqlSink is."""
        if self._pool is None or not self._is_parallel:
            durable = self._serial.flush()
            assert durable is not None
            if self._pool is None:
                records = self._serial.hand_over()
                who = f"sink {self.name}"
                self._pool = Pool(
                    who,
                    self._database,
                    self._count,
                    durable,
                    records,
                    self.safe_mode,
                    self._now,
                    self._letters,
                    self._time,
                    self._serial.after_start,
                    merges=self._merges,
                )
            else:
                self._pool.go_on(durable)
            self._is_parallel = True
        return self._pool

    def _settle(self) -> None:
        """Wait for the workers before something that must be alone."""
        if self._pool is not None and self._is_parallel:
            self._serial.take_over(self._pool.settle())
            self._is_parallel = False

    def _fail(self, error: Exception) -> NoReturn:
        explained = error if isinstance(error, TidemillError) else self._database.explain(error, "writing")
        self.close()
        if isinstance(explained, Exception) and explained is not error:
            raise explained if isinstance(explained, TidemillError) else SinkError(str(explained)) from error
        raise error
