"""`spark.readStream.format("tidemill")`: changes in micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ...errors import CheckpointError
from ..offsets.offset import Limit, Offset, Offsets
from ..summary import summarised
from ..worker import CopiedToWorkers
from .options import READ_FORM, ReadOptions
from .output import Output
from .partition import TaskPartition
from .parts import WHOLE
from .schema_changes import EVOLVE, difference, excess, query_start
from .watch import Watch

if TYPE_CHECKING:
    from ..capture.captures import Captures

LEASE: Final = "lease"
TABLES: Final = "tables"
"""Field of an offset: the table patterns with which the query started."""
BOUNDS: Final = "bounds"
"""Field of an offset: the raw keys in hex between the ranges of its batch. Without it the batch is divided
by table names."""


class StreamReader(CopiedToWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in a process of the driver as long as the query; tasks only call `read`."""

    def __init__(self, options: ReadOptions, output: Output, *, splits_tables: bool = False) -> None:
        """Raises ConfigError."""
        self.options = options
        self.output = output
        self.captures = _captures(options)
        self._splits_tables = splits_tables and self.captures is None
        """False with captures, which don't know the rows' keys."""
        self._refusals: list[str] = []
        self._watch: Watch | None = None  # never in a task
        self._at: Offset | None = None
        self._is_new = False
        self._end: Offset | None = None
        """End of a query with the trigger availableNow: the source's end when it started."""
        self._started: Offset | None = None
        """The source's end when a query with typed columns started."""
        self._is_past_start = output.table is None

    # --- in the driver

    @summarised
    def initialOffset(self) -> dict[str, object]:  # noqa: N802
        self._query_start()
        self._is_new = self._at is None  # Spark calls this once more after the first batch
        return self._fields(self._source.ask(self._initial), {})

    def _initial(self, offsets: Offsets) -> Offset:
        offsets.tables()
        options = self.options
        if options.starting_position:
            return offsets.at_position(options.starting_position)
        match options.starting_ts:
            case "latest":
                return offsets.latest()
            case "earliest":
                return offsets.earliest()
            case ts:
                return offsets.at(int(ts))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the batch limit; none for TiKV, which doesn't tell the amount of changes."""
        options = self.options
        if options.reading.by_ts:
            return ReadAllAvailable()
        if options.max_rows:
            return ReadMaxRows(options.max_rows)
        return ReadMaxBytes(options.max_bytes) if options.max_bytes else ReadAllAvailable()

    @summarised
    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        """Return the end of the next batch; `start` if there are no changes. Raises Retryable and Fatal."""
        self._at = begin = Offset.read(start)
        self._check_tables(start)
        latest = self._following(begin, _limit(limit))
        if self._is_new and latest == begin:
            # Spark stores only the ends of batches: an empty first batch makes a restarted query start here,
            # not at the source's end by then.
            latest = Offset(begin.ts + 1, begin.position, begin.source)
        self._is_new = False
        if latest == begin:
            return start
        return {**self._fields(latest, start), **self._bounds(begin, latest)}

    def _following(self, begin: Offset, limit: Limit) -> Offset:
        """Return a batch's end. With typed columns a batch is either before the query's start or after it."""
        end, start = self._end, self._query_start()
        if start is not None and not self._is_past_start and start.is_after(begin):
            if end is not None and not end.is_after(start):
                return self._source.following(begin, end, limit)
            if (following := self._source.following(begin, start, limit)) != begin:
                return following
        self._is_past_start = True
        return self._source.following(begin, end, limit)

    def _query_start(self) -> Offset | None:
        """Return the source's end at the query's start; None for the raw envelope.

        Raises ConfigError if the table was altered.
        """
        table = self.output.table
        if table is not None and self._started is None:
            compare = excess if self.options.schema_changes == EVOLVE else difference
            self._started = self._source.ask(lambda offsets: query_start(offsets, table, compare))
        return self._started

    def _fields(self, offset: Offset, before: dict[str, object]) -> dict[str, object]:
        """Return an offset's fields. The lease is copied from offset to offset, so it is in Spark's
        checkpoint, and a restarted driver has the same."""
        fields = {**offset.fields(), TABLES: [*self.options.patterns]}
        if self.captures is None and LEASE not in before:
            return fields
        return {**fields, LEASE: before.get(LEASE) or uuid4().hex}

    def _check_tables(self, start: dict[str, Any]) -> None:
        """Raise CheckpointError if the query started with other tables: earlier changes would be missing."""
        now = [*self.options.patterns]
        if (before := start.get(TABLES, now)) != now:
            raise CheckpointError(
                f"the query's checkpoint is of the tables {', '.join(before)}, and now they are "
                f"{', '.join(now)}: keep them, or give the query a checkpointLocation of its own"
            )

    def _bounds(self, start: Offset, end: Offset) -> dict[str, object]:
        """Return the batch's bounds, stored since regions may differ when the batch is planned again."""
        if not self._splits_tables:
            return {}
        bounds = self._source.ask(lambda offsets: offsets.bounds(start, end))
        return {} if bounds is None else {BOUNDS: [key.hex() for key in bounds]}

    @summarised
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._end = self._source.ask(lambda offsets: offsets.latest())

    @summarised
    def reportLatestOffset(self) -> dict[str, object] | None:  # noqa: N802
        """Return the source's end, and the query's lag."""
        at = self._at
        if at is None:
            return None
        lag = self._source.ask(lambda offsets: offsets.lag(at))
        return {**lag, "captureRefused": "; ".join(self._refusals)} if self._refusals else lag

    @summarised
    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        begin, until = Offset.read(start), Offset.read(end)
        if begin.position == until.position:
            return []
        lease = str(end.get(LEASE, ""))
        parts = WHOLE.divided(self.options.partitions, _keys(end))
        query = self._query_start()
        is_from_before = query is not None and not until.is_after(query)
        return [TaskPartition(part, begin, until, lease, is_from_before=is_from_before) for part in parts]

    def commit(self, end: dict[str, object]) -> None:
        """Acknowledge a batch that Spark has committed. Never raises: the next batch repeats it."""
        if self.captures is not None and LEASE in end:
            from ..capture import client  # queries without captures do without Arrow Flight

            self._refusals = client.acknowledge(
                self.captures.addresses, str(end[LEASE]), Offset.read(end), access=self.captures.access
            )

    def stop(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    @property
    def _source(self) -> Watch:
        if self._watch is None:
            self._watch = Watch(self.options)
        return self._watch

    # --- in tasks

    @summarised
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the partition's rows. Raises Retryable and Fatal."""
        from .stream_task import batches  # brings the engine, which only tasks need

        assert isinstance(partition, TaskPartition)
        partition.planner.check()
        with closing(batches(self.options, self.output, partition, self.captures)) as read_batches:
            yield from read_batches


def _captures(options: ReadOptions) -> Captures | None:
    if not options.capture:
        return None
    from ..capture.captures import captures_of  # brings Arrow Flight

    return captures_of(options, READ_FORM)


def _keys(end: dict[str, Any]) -> list[bytes] | None:
    if BOUNDS not in end:
        return None
    try:
        return [bytes.fromhex(key) for key in end[BOUNDS]]
    except (TypeError, ValueError):
        raise CheckpointError(
            f"the query's checkpoint holds the bounds {end[BOUNDS]!r}, which aren't keys in hex; give the "
            "query a checkpointLocation of its own"
        ) from None


def _limit(limit: ReadLimit) -> Limit:
    match limit:
        case ReadMaxRows(max_rows=rows):
            return Limit(rows=rows)
        case ReadMaxBytes(max_bytes=size):
            return Limit(bytes=size)
    return Limit()
