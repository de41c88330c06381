"""Where the query of a sink begins: at the place that its target had when Spark took it over.

The snapshot, where a feed has one, is the local engine's work, up to the source's end. Then the feed's own
checkpoint in the target is marked: it says where the query began, in how many parts, and the local engine
refuses it. So either engine can't repeat what the other one did, and no file of the driver has to be kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ..errors import ConfigError
from ..events import Batch, Checkpoint
from ..options import FeedOptions, SinkOptions, checkpoint_file
from ..sink import Sink, open_sink
from .offset import Offset
from .writer_files import Files
from .writer_options import WriteOptions

_MARK: Final = re.compile(r"engine spark, (\d+) partitions, of (.*)")
_LOADED: Final = "0-load.ndjson"
"""In a directory of lines: what the local engine wrote."""


class Start(Struct, frozen=True):
    """Of one sink's query."""

    offset: Offset
    partitions: int


def local_sinks(options: FeedOptions) -> dict[str, Sink]:
    """The sinks as the local engine has them, not opened yet. Raises ConfigError, SinkError."""
    return {sink.name: _local(options, sink) for sink in options.sinks}


def _local(options: FeedOptions, sink: SinkOptions) -> Sink:
    url, more = sink.url, dict(sink.options)
    written = WriteOptions(url=url, sink=more)
    if written.is_files:
        files = Files(written)
        files.prepare()
        if not files.is_parquet:
            url = f"file://{files.directory / _LOADED}"
    store = checkpoint_file(options, sink.name)
    return open_sink(sink.name, url, feed=options.name, store=store, options=more)


def find_start(sink: Sink) -> Start | Checkpoint | None:
    """Where its query began; or the checkpoint of a feed that is loaded, and Spark may take over; or None."""
    try:
        at = sink.open()
    finally:
        sink.close()
    if at is None or at.loading is not None or not at.position:
        return None
    found = _MARK.fullmatch(at.source)
    return Start(Offset(at.ts - 1, at.position, found[2]), int(found[1])) if found else at


def take_over(sink: Sink, partitions: int) -> Start:
    """Mark a loaded target. Raises as sinks do."""
    try:
        at = sink.open()
        assert at is not None
        source = f"engine spark, {partitions} partitions, of {at.source}"
        sink.write(Batch([], Checkpoint(at.ts + 1, at.position, None, source)))
        sink.flush()
    finally:
        sink.close()
    return Start(Offset(at.ts, at.position, at.source), partitions)


def check_partitions(starts: Mapping[str, Start], partitions: int) -> None:
    """Raise ConfigError for another number than a query began with: what it has done is kept by partition."""
    for name, start in starts.items():
        if start.partitions != partitions:
            raise ConfigError(
                f"partitions = {partitions}: sink {name} was begun with {start.partitions}; go on with as "
                "many, or name another target"
            )


def unloaded(found: Mapping[str, Start | Checkpoint | None]) -> Sequence[str]:
    """The sinks that the local engine has yet to bring up to date."""
    return [name for name, start in found.items() if start is None]
