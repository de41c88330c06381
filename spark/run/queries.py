"""The queries of a feed on Spark, one per sink, and their status."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.options import FeedOptions
from ...engine.sink_options import SinkOptions
from ...engine.status import SinkStatus
from ...events import physical_ms
from ..offsets.offset import Offset
from ..option_values import as_text
from ..reading import reading_of_kind
from .captures import lease_of
from .feed_reads import feed_reads
from .source import FORMAT, LEASE, LOADED, OLDEST, UNTIL, RunSource
from .start import Start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class SinkQuery:
    """One sink's query, from its start to its end."""

    def __init__(
        self,
        options: FeedOptions,
        sink: SinkOptions,
        start: Start,
        target: str,
        captures: Mapping[str, str],
        loaded: int,
    ) -> None:
        """`captures` are the data source's options for captures; `loaded` rows were written before."""
        self.name = sink.name
        self.rows = loaded
        self.batch = -1
        self.at = start.offset
        """End of the last batch."""
        self._directory = options.data_dir / "spark" / sink.name
        self._log = QueryLog(self._directory)
        self._captures = captures
        self._options = options
        self._sink = sink
        self._start = start
        self._target = target
        self._lag: float | None = None
        self._seen = ""
        self._is_idle = False
        """True if the last batch attempt found no changes."""
        self._was_stopped = False
        self._query: StreamingQuery | None = None

    def start(self, spark: SparkSession, trigger: str) -> None:
        """Start the query. Raises Spark's errors."""
        options, sink, parts = self._options, self._sink, self._start.partitions
        self._is_idle = False
        # Queries of one registration share a map in Spark, which must not change while a task is sent.
        spark.dataSource.register(RunSource)
        id_ = f"{options.name}.{sink.name}"
        frame = spark.readStream.format(FORMAT).options(**self._reads()).load()
        writer = (
            frame.writeStream.format(FORMAT)
            .queryName(id_)
            .option("checkpointLocation", self._directory.absolute().as_uri())
            .options(sink=sink.url, id=id_, partitions=str(parts))
            .options(**{f"sink.{key}": as_text(value) for key, value in sink.section.items()})
        )
        ends = writer.trigger(availableNow=True) if options.until else writer.trigger(processingTime=trigger)
        self._query = ends.start()

    def _reads(self) -> dict[str, str]:
        start, options = self._start, self._options
        by_ts = reading_of_kind(options.source.kind).by_ts
        where = {"startingTs": str(start.offset.ts)} if by_ts else {"startingPosition": start.offset.position}
        return {
            **feed_reads(options),
            **self._captures,
            **where,
            "values": "none",
            "partitions": str(start.partitions),
            "sorterMemory": str(options.sorter.memory_bytes),
            "name": f"{options.name[:40]}-{self.name[:20]}",
            UNTIL: options.until.replace("now", ""),
            LEASE: lease_of(options),
            LOADED: str(start.offset.ts),
        }

    # --- while it runs

    def look(self, now: float) -> None:
        """Update rows, batch and lag from the query's progress since the last call; `now` in Unix seconds."""
        for progress in self._query.recentProgress if self._query is not None else ():
            if progress["timestamp"] > self._seen:
                self._seen = progress["timestamp"]
                self._take(progress)
        done = self._log.done
        if done > self.batch and (end := self._log.end(done)):
            self.batch, self.at = done, Offset.read(end)
        self._lag = self._lag_at(now)

    def _take(self, progress: Any) -> None:
        self.rows += progress["numInputRows"] or 0
        source = progress["sources"][0]
        self._is_idle = source["startOffset"] == source["endOffset"]

    def _lag_at(self, now: float) -> float | None:
        """Return the age in seconds of the oldest change missing in the target; None while it is unknown."""
        batch = self._log.begun
        if batch > self.batch:
            oldest = self._log.end(batch).get(OLDEST, self.at.ts)
        elif self._has_ended:
            oldest = 0
        elif self.at.position.isdecimal():  # TiKV: later changes are unknown
            oldest = self.at.ts
        elif self._is_idle:
            oldest = 0
        else:
            return self._lag
        return max(0.0, now - physical_ms(oldest) / 1000) if oldest else 0.0

    @property
    def _has_ended(self) -> bool:
        """True if the query has ended by itself, without an error."""
        query = self._query
        return query is not None and not (self._was_stopped or query.isActive or query.exception())

    @property
    def is_active(self) -> bool:
        return self._query is not None and self._query.isActive

    @property
    def is_between_batches(self) -> bool:
        return not self.is_active or not (self._query and self._query.status["isTriggerActive"])

    @property
    def error(self) -> Exception | None:
        return self._query.exception() if self._query is not None else None

    def stop(self) -> None:
        if self._query is not None:
            self._was_stopped = self._query.isActive
            self._query.stop()

    @property
    def status(self) -> SinkStatus:
        detail = f"batch {self.batch}" if self.batch >= 0 else ""
        return SinkStatus(
            self._sink.name, self._target, self.at.position, self.at.ts, self._lag, self.rows, detail=detail
        )


def lines(queries: Sequence[SinkQuery]) -> str:
    """Describe the queries' batches for people."""
    return ", ".join(f"{query.name} at batch {query.batch}" for query in queries if query.batch >= 0)


class QueryLog:
    """A query's checkpoint directory, read only. It may not exist yet."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: tuple[int, dict[str, object]] = -1, {}

    @property
    def begun(self) -> int:
        """Number of the last batch that was planned; -1: none."""
        return self._last("offsets")

    @property
    def done(self) -> int:
        """Number of the last batch that is finished; -1: none."""
        return self._last("commits")

    def end(self, batch: int) -> dict[str, Any]:
        """Return the end offset of a planned batch, as the source gave it; empty: there is none."""
        if self._read[0] != batch:
            with suppress(OSError, ValueError, IndexError):
                text = (self._directory / "offsets" / str(batch)).read_text()
                self._read = batch, json.loads(text.splitlines()[-1])
        return self._read[1] if self._read[0] == batch else {}

    def _last(self, kind: str) -> int:
        names = [path.name for path in (self._directory / kind).glob("[0-9]*")]
        return max((int(name) for name in names if name.isdecimal()), default=-1)
