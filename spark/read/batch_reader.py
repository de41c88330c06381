"""`spark.read.format("tidemill")`: a snapshot, or the changes between two timestamps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from ..offsets.offset import Offset, Offsets, ts_offset
from ..offsets.offsets import batch_range, open_offsets
from ..snapshot.partition import SnapshotPartition
from ..summary import summarised
from ..worker import CopiedToWorkers
from .filters import Pushed
from .options import ReadOptions
from .output import Output
from .partition import TaskPartition
from .parts import WHOLE, Part
from .pick import Pick


class BatchReader(CopiedToWorkers, DataSourceReader):
    """Plans the partitions of a batch in a process of the driver; tasks read them."""

    def __init__(self, options: ReadOptions, output: Output) -> None:
        self.options = options.reading.of_batch(options)
        self.output = output
        self.pushed = Pushed()

    @summarised
    def partitions(self) -> Sequence[InputPartition]:
        """Plan the batch's partitions. Raises Retryable and Fatal."""
        if self.options.reads_changes:
            with closing(open_offsets(self.options)) as offsets:
                offsets.tables()
                return self._of_changes(offsets, *batch_range(self.options, offsets))
        if self.output.table is not None and "insert" in self._operations:
            planned = self.options.reading.plan_snapshot(self.options, self.pushed.images)
            if planned is not None:
                return planned
        with closing(open_offsets(self.options)) as offsets:
            offsets.tables()
            return self._of_snapshot(offsets)

    def _of_changes(self, offsets: Offsets, start: Offset, end: Offset) -> list[InputPartition]:
        options, part = self.options, self._part
        if options.reading.by_ts:
            start, end = _narrowed(start, end, self.pushed)
        if start.ts >= end.ts:
            return []
        parts = part.divided(options.partitions, offsets.bounds(start, end, part))
        return [TaskPartition(one, start, end) for one in parts]

    def _of_snapshot(self, offsets: Offsets) -> list[InputPartition]:
        options, part = self.options, self._part
        at = offsets.at(options.ts) if options.ts else offsets.latest()
        # A sink that the rows are written to needs a table's definition before its rows.
        has_creations = self.output.is_raw and "ddl" in self._operations
        bounds = None if has_creations else offsets.bounds(at, at, part)
        # A snapshot of the present is one consistent view, so it needs a single session.
        parts = part.divided(options.partitions if options.reading.by_ts else 1, bounds)
        return [TaskPartition(one, None, at) for one in parts]

    @property
    def _part(self) -> Part:
        return replace(WHOLE, schemas=self.pushed.schemas, tables=self.pushed.tables)

    @summarised
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the partition's rows. Raises Retryable and Fatal."""
        if isinstance(partition, SnapshotPartition):
            yield from self._rows(partition)
            return
        if not isinstance(partition, TaskPartition):  # Spark's placeholder if there are no partitions
            return
        from .bounded import change_items, snapshot_items  # bring the engine

        partition.planner.check()
        part, start, end = partition.part, partition.start, partition.end
        if start is None:
            items = snapshot_items(self.options, part, end)
        else:
            items = change_items(self.options, part, start, end)
        with closing(items):
            yield from self.output.batches(Pick(part, self._operations), items)

    def _rows(self, partition: SnapshotPartition) -> Iterator[pa.RecordBatch]:
        assert self.output.table is not None
        partition.planner.check()
        rows = self.options.reading.read_snapshot(self.options, partition, self.output.table)
        with closing(rows):
            for batch in rows:
                if batch.num_rows:
                    yield self.output.selected(batch)

    @property
    def _operations(self) -> Collection[str]:
        wanted, pushed = self.options.operations, self.pushed.operations
        return wanted if pushed is None else pushed.intersection(wanted)


class PushingReader(BatchReader):
    """A reader for sessions with spark.sql.python.filterPushdown.enabled; Spark rejects it in others.

    Spark keeps the plan that it made with the last pushed filters, and reads by it whatever else is made of
    the frame that load() returned, also without filters. So it is used only with the option filterPushdown.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        return self.pushed.push(filters)


def _narrowed(start: Offset, end: Offset, pushed: Pushed) -> tuple[Offset, Offset]:
    after = start.ts if pushed.after is None else max(start.ts, pushed.after)
    up_to = end.ts if pushed.up_to is None else min(end.ts, pushed.up_to)
    return ts_offset(after, start.source), ts_offset(up_to, end.source)
