"""The start of a sink's query: the target's position when Spark took it over.

After a target is loaded (`load.py`), the feed's checkpoint in it gets an owner, which has the query's number
of partitions; the local engine rejects such a checkpoint. So neither engine can repeat the other's work, and
the driver needs no file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from ...dialects.options import RowOptions
from ...engine.opening import sink_context
from ...engine.options import FeedOptions
from ...engine.sink_options import SinkOptions
from ...errors import ConfigError
from ...events import Batch, Checkpoint, SparkQuery, parked_tables
from ...sink import SinkFactory
from ...sink.registry import open_given
from ...sink.sink import closing
from ..offsets.offset import Offset
from ..write.options import way_of


class Start(Struct, frozen=True):
    """Start of one sink's query."""

    offset: Offset
    partitions: int


def local_sinks(options: FeedOptions) -> dict[str, SinkFactory]:
    """Return factories of the sinks of the local engine. Raises ConfigError, SinkError."""
    return {sink.name: _local(options, sink) for sink in options.sinks}


def _local(options: FeedOptions, sink: SinkOptions) -> SinkFactory:
    reject_own_tables(sink)
    way_of(sink.given.kind)
    return SinkFactory(partial(open_given, sink.given, sink_context(options, sink.name)))


def reject_own_tables(sink: SinkOptions) -> None:
    """Raise ConfigError for a sink with its own tables or a relay, which tasks don't support."""
    if sink.rules.tables is not None:
        raise ConfigError(
            f"sink {sink.name}: tables: on Spark every sink is given all tables of the feed; use "
            "source.tables of a feed of its own, or the local engine"
        )
    if sink.rules.omissions or sink.rules.loopback_channel:
        raise ConfigError(
            f"sink {sink.name}: sync_ddl, ignore_txn_commit_ts and loopback_channel are for the local engine"
        )
    if isinstance(sink.given.options, RowOptions) and sink.given.options.syncpoint_seconds:
        raise ConfigError(f"sink {sink.name}: syncpoint_seconds: tasks of Spark write at the same time")
    if sink.rules.relay is not None:
        raise ConfigError(f"sink {sink.name}: relay: tasks of Spark write no relay; use the local engine")


def find_start(factory: SinkFactory) -> Start | Checkpoint | None:
    """Return the start of the sink's query, or a checkpoint that isn't taken over yet, or None."""
    sink = factory.new()
    with closing(sink):
        at = sink.open()
    if at is None:
        return None
    if not isinstance(at.owner, SparkQuery):
        return at
    return Start(Offset(at.ts - 1, at.position, at.source), at.owner.partitions)


def take_over(factory: SinkFactory, partitions: int) -> Start:
    """Mark a loaded target as owned by Spark, and return its query's start. Raises as sinks do."""
    sink = factory.new()
    with closing(sink):
        at = sink.open()
        assert at is not None
        taken = Checkpoint(at.ts + 1, at.position, None, at.source, SparkQuery(partitions))
        sink.write(Batch([], taken))
        sink.flush()
    return Start(Offset(at.ts, at.position, at.source), partitions)


def check_partitions(starts: Mapping[str, Start | Checkpoint | None], partitions: int) -> None:
    """Raise ConfigError if a query was started with another number: checkpoints are stored by partition."""
    for name, start in starts.items():
        if isinstance(start, Start) and start.partitions != partitions:
            raise ConfigError(
                f"partitions = {partitions}: sink {name} was begun with {start.partitions}; keep "
                f"{start.partitions}, or name another target"
            )


def reject_parked(starts: Mapping[str, Start | Checkpoint | None]) -> None:
    """Raise ConfigError if a table of a target is paused or failed, which Spark would follow nevertheless."""
    for name, start in starts.items():
        parked = parked_tables(start.loading) if isinstance(start, Checkpoint) else {}
        if tables := sorted(table for table, one in parked.items() if one.state != "removed"):
            raise ConfigError(
                f"sink {name}: {', '.join(tables)}: Spark can't leave out a table that is paused or failed: "
                "resume it, and run the feed with --engine local until it follows"
            )


def is_loaded(start: Start | Checkpoint | None) -> bool:
    """True if a query may start, or has started."""
    if isinstance(start, Checkpoint):
        return start.is_loaded and bool(start.position)
    return start is not None
