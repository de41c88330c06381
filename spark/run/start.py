"""Where the query of a sink begins: at the place that its target had when Spark took it over.

Once a target is loaded (`load.py`), the feed's own checkpoint in it gets an owner: it says where the query
began, in how many partitions, and the local engine refuses it. So neither engine can repeat what the other
did, and no file of the driver has to be kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ...engine.options import FeedOptions, SinkOptions, sink_context
from ...errors import ConfigError
from ...events import Batch, Checkpoint, SparkQuery
from ...sink import Sink
from ...sink.registry import open_given
from ..offsets.offset import Offset
from ..write.files import Files
from ..write.options import WriteOptions


class Start(Struct, frozen=True):
    """Of one sink's query."""

    offset: Offset
    partitions: int


def local_sinks(options: FeedOptions) -> dict[str, Sink]:
    """The sinks as the local engine has them, not opened yet. Raises ConfigError, SinkError."""
    return {sink.name: _local(options, sink) for sink in options.sinks}


def _local(options: FeedOptions, sink: SinkOptions) -> Sink:
    reject_own_tables(sink)
    written, given = WriteOptions(url=sink.url, sink=sink.section), sink.given
    if written.is_files:
        files = Files(written)
        files.prepare()
        given = given._replace(target=files.way.load_url(files.directory))
    return open_given(given, sink_context(options, sink.name))


def reject_own_tables(sink: SinkOptions) -> None:
    """Raise ConfigError for a sink with tables of its own, which tasks don't know."""
    if sink.tables is not None:
        raise ConfigError(
            f"sink {sink.name}: tables: on Spark every sink is given all tables of the feed; use "
            "source.tables of a feed of its own, or the local engine"
        )


def find_start(sink: Sink) -> Start | Checkpoint | None:
    """Where its query began; or the checkpoint of a feed, to be taken over once it is loaded; or None."""
    try:
        at = sink.open()
    finally:
        sink.close()
    if at is None:
        return None
    if not isinstance(at.owner, SparkQuery):
        return at
    return Start(Offset(at.ts - 1, at.position, at.source), at.owner.partitions)


def take_over(sink: Sink, partitions: int) -> Start:
    """Mark a loaded target. Raises as sinks do."""
    try:
        at = sink.open()
        assert at is not None
        taken = Checkpoint(at.ts + 1, at.position, None, at.source, SparkQuery(partitions))
        sink.write(Batch([], taken))
        sink.flush()
    finally:
        sink.close()
    return Start(Offset(at.ts, at.position, at.source), partitions)


def check_partitions(found: Mapping[str, Start | Checkpoint | None], partitions: int) -> None:
    """Raise ConfigError for another number than a query began with: what it has done is kept by partition."""
    for name, start in found.items():
        if isinstance(start, Start) and start.partitions != partitions:
            raise ConfigError(
                f"partitions = {partitions}: sink {name} was begun with {start.partitions}; go on with as "
                "many, or name another target"
            )


def is_loaded(found: Start | Checkpoint | None) -> bool:
    """Whether a query may begin, or has begun."""
    if isinstance(found, Checkpoint):
        return found.loading is None and bool(found.position)
    return found is not None
