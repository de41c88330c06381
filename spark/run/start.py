"""Where the query of a sink begins: at the place that its target had when Spark took it over.

Once a target is loaded (`run_load.py`), the feed's own checkpoint in it is marked: it says where the query
began, in how many parts, and the local engine refuses it. So either engine can't repeat what the other did,
and no file of the driver has to be kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ...engine.checkpoint import ON_SPARK
from ...engine.options import FeedOptions, SinkOptions, checkpoint_file
from ...errors import ConfigError
from ...events import Batch, Checkpoint
from ...sink import Sink, open_sink
from ..offsets.offset import Offset
from ..write.files import Files
from ..write.options import WriteOptions

_MARK: Final = re.compile(rf"{ON_SPARK}, (\d+) partitions, of (.*)")
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
    """Where its query began; or the checkpoint of a feed, to be taken over once it is loaded; or None."""
    try:
        at = sink.open()
    finally:
        sink.close()
    if at is None:
        return None
    found = _MARK.fullmatch(at.source)
    return Start(Offset(at.ts - 1, at.position, found[2]), int(found[1])) if found else at


def take_over(sink: Sink, partitions: int) -> Start:
    """Mark a loaded target. Raises as sinks do."""
    try:
        at = sink.open()
        assert at is not None
        source = f"{ON_SPARK}, {partitions} partitions, of {at.source}"
        sink.write(Batch([], Checkpoint(at.ts + 1, at.position, None, source)))
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
