"""The queries of a feed on Spark, one for each sink, and what they say of themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...engine.options import FeedOptions, SinkOptions
from ...engine.status import SinkStatus
from ...events import physical_ms
from ..offsets.offset import Offset
from ..reading import reading_of_kind
from .captures import lease_of
from .feed_reads import feed_reads
from .source import FORMAT, LEASE, UNTIL, RunSource
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
        """`captures` are the data source's options about them; so many rows were `loaded` before."""
        self.name = sink.name
        self.rows = loaded
        self.batch = -1
        self.at = start.offset
        """How far it is."""
        self._captures = captures
        self._options = options
        self._sink = sink
        self._start = start
        self._target = target
        self._lag: float | None = None
        self._seen = ""
        self._query: StreamingQuery | None = None

    def start(self, spark: SparkSession, section: Mapping[str, Any], trigger: str) -> None:
        """`section` is the feed's source section. Raises what Spark does."""
        options, sink, parts = self._options, self._sink, self._start.partitions
        # Queries of one registration share a map of Spark's: one may change it as a task of another is sent.
        spark.dataSource.register(RunSource)
        id_ = f"{options.name}.{sink.name}"
        frame = spark.readStream.format(FORMAT).options(**self._reads(section)).load()
        writer = (
            frame.writeStream.format(FORMAT)
            .queryName(id_)
            .option("checkpointLocation", (options.data_dir / "spark" / sink.name).absolute().as_uri())
            .options(sink=sink.url, id=id_, partitions=str(parts))
            .options(**{f"sink.{key}": str(value) for key, value in sink.section.items()})
        )
        ends = writer.trigger(availableNow=True) if options.until else writer.trigger(processingTime=trigger)
        self._query = ends.start()

    def _reads(self, section: Mapping[str, Any]) -> dict[str, str]:
        start, options = self._start, self._options
        by_ts = reading_of_kind(options.source_kind).by_ts
        where = {"startingTs": str(start.offset.ts)} if by_ts else {"startingPosition": start.offset.position}
        return {
            **feed_reads(section, options),
            **self._captures,
            **where,
            "values": "none",
            "partitions": str(start.partitions),
            "sorterMemory": str(options.sorter.memory_bytes),
            "name": f"{options.name[:40]}-{self.name[:20]}",
            UNTIL: options.until.replace("now", ""),
            LEASE: lease_of(options),
        }

    # --- while it runs

    def look(self, now: float) -> None:
        """Take up what it has said since the last look; `now` in Unix seconds."""
        query = self._query
        if query is None:
            return
        for progress in query.recentProgress:
            if progress["timestamp"] > self._seen:
                self._seen = progress["timestamp"]
                self._take(progress)
        waits = bool(query.status["isDataAvailable"])
        self._lag = max(0.0, now - physical_ms(self.at.ts) / 1000) if waits else 0.0

    def _take(self, progress: Any) -> None:
        self.rows += progress["numInputRows"] or 0
        self.batch = progress["batchId"]
        source = progress["sources"][0]
        end = source["endOffset"]
        found = json.loads(end) if isinstance(end, str) else end
        if found:
            self.at = Offset.read(found)

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
            self._query.stop()

    @property
    def status(self) -> SinkStatus:
        detail = f"batch {self.batch}" if self.batch >= 0 else ""
        return SinkStatus(
            self._sink.name, self._target, self.at.position, self.at.ts, self._lag, self.rows, detail=detail
        )


def lines(queries: Sequence[SinkQuery]) -> str:
    """The batches that they are at, for people."""
    return ", ".join(f"{query.name} at batch {query.batch}" for query in queries if query.batch >= 0)
