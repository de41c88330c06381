"""`tidemill run feed.toml --engine spark`: a feed that Spark tasks read and write."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Event

from ...engine.opening import make_data_dir
from ...engine.options import FeedOptions
from ...engine.progress import open_progress
from ...engine.status import StatusFile
from ...engine.stopping import set_by_signals
from ...errors import CheckpointError
from ...sink.factory import reject_duplicates
from ..launch.quiet import LOG, quiet_session
from ..launch.starting import starting
from ..reading import reading_of_kind
from ..sections import spark_feed
from .captures import captures_to_ask
from .load import Load
from .start import local_sinks
from .stream import Stream


def run(document: Mapping[str, object], *, as_json: bool = False, **flags: object) -> int:
    """Run the feed until it is stopped or reaches `until`; return the exit status 0.

    `document` are the tables of a feed.toml; `flags` override its table `[spark]`. Raises ConfigError, and
    the error that stopped the feed.
    """
    options = spark_feed(document, flags)
    how = options.spark
    options.reject_local_only("Spark")
    options.reject_parking("Spark")
    options.reject_verification("Spark")
    reading_of_kind(options.source.kind)
    sinks = local_sinks(options)
    reject_duplicates([*sinks.values()])
    make_data_dir(options)
    captures = captures_to_ask(options)
    progress = open_progress(sys.stdout if as_json else sys.stderr, as_json=as_json)
    stopping = Event()
    rows = _rows_before(options)
    try:
        progress.show(starting(options, [*sinks.values()]))
        with set_by_signals(stopping):
            spark = quiet_session(options.name, how.master, how.config, options.data_dir / LOG)
        with set_by_signals(stopping):
            load = Load(
                spark=spark,
                options=options,
                sinks=sinks,
                progress=progress,
                stopping=stopping,
                rows=rows,
            )
            starts = load.starts()
            if not stopping.is_set():
                stream = Stream(options, starts, sinks, load.rows, captures, progress, stopping)
                stream.run(spark)
    finally:
        progress.close()
    return 0


def _rows_before(options: FeedOptions) -> dict[str, int]:
    """Return the rows written by earlier runs of the feed by sink, from its last status."""
    with suppress(CheckpointError):
        return {sink.name: sink.rows for sink in StatusFile(options.data_dir).load().sinks}
    return {}
