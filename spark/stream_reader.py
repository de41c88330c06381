"""`spark.readStream.format("tidemill")`: changes, micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from .bounded import change_items
from .offset import Limit, Offset, Offsets
from .offsets import open_offsets
from .options import ReadOptions
from .output import Output
from .partition import TaskPartition
from .parts import WHOLE
from .pick import Pick


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in a process of the driver, for as long as the query; only `read` runs in tasks."""

    def __init__(self, options: ReadOptions, output: Output) -> None:
        self.options = options
        self.output = output
        self._offsets: Offsets | None = None
        self._end: Offset | None = None
        """Of a query that reads only what is there: where that ended when it began."""
        self._checked = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        options, offsets = self.options, self._source()
        if options.starting_position:
            found = offsets.at_position(options.starting_position)
        elif options.starting_ts == "latest":
            found = offsets.latest()
        elif options.starting_ts == "earliest":
            found = offsets.earliest()
        else:
            assert isinstance(options.starting_ts, int)
            found = offsets.at(options.starting_ts)
        return found.fields()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin = Offset.read(start)
        offsets = self._source()
        if not self._checked:
            offsets.check(begin)
            self._checked = True
        return offsets.following(begin, self._end, _limit(limit)).fields()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self.options.max_rows:
            return ReadMaxRows(self.options.max_rows)
        return ReadMaxBytes(self.options.max_bytes) if self.options.max_bytes else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._end = self._source().latest()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, until = Offset.read(start), Offset.read(end)
        if begin == until:
            return []
        return [TaskPartition(part, begin, until) for part in WHOLE.divided(self.options.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises Retryable and Fatal."""
        assert isinstance(partition, TaskPartition)
        assert partition.start is not None
        partition.check()
        part = partition.part
        with closing(change_items(self.options, part, partition.start, partition.end)) as items:
            yield from self.output.batches(Pick(part, self.options.operations), items)

    def stop(self) -> None:
        offsets, self._offsets = self._offsets, None
        if offsets is not None:
            offsets.close()

    def _source(self) -> Offsets:
        if self._offsets is None:
            self._offsets = open_offsets(self.options)
        return self._offsets


def _limit(limit: ReadLimit) -> Limit:
    match limit:
        case ReadMaxRows(max_rows=rows):
            return Limit(rows=rows)
        case ReadMaxBytes(max_bytes=size):
            return Limit(bytes=size)
    return Limit()
