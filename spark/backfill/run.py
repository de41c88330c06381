"""`tidemill backfill feed.toml`: loads the sinks of a feed by Spark; `tidemill run` continues from there."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Final

from ...engine.opening import make_data_dir, open_sinks
from ...engine.progress import open_progress
from ...engine.stopping import set_by_signals
from ...errors import ConfigError, Retryable
from ...sink import SinkFactory
from ..launch.quiet import LOG, quiet_session
from ..launch.starting import starting
from ..reading import reading_of_kind
from ..run.start import Start, find_start, reject_own_tables
from ..sections import SparkFeedOptions, spark_feed
from .fill import fill
from .fill_status import FillStatus

DIRECTORY: Final = "backfill"
"""Name of the backfill's directory in a feed's data directory."""


def run(
    document: Mapping[str, object],
    *,
    keep: bool = False,
    as_json: bool = False,
    **flags: object,
) -> int:
    """Backfill the feed of these tables of a feed.toml into its sinks; 0, the exit status.

    `flags` override the file's table `[spark]`. The files are removed once all
    sinks are loaded, unless `keep`. Raises ConfigError (also while the feed runs), Stopped, Retryable and
    Fatal; the same call then continues.
    """
    options = spark_feed(document, flags)
    how = options.spark
    options.reject_local_only("a backfill")
    reading_of_kind(options.source.kind)
    if not options.sinks and not keep:
        raise ConfigError("sink: none is named, and the files would be removed: name one, or keep the files")
    for sink in options.sinks:
        reject_own_tables(sink)
    make_data_dir(options)
    progress = open_progress(sys.stdout if as_json else sys.stderr, as_json=as_json)
    stopping = Event()
    sinks = open_sinks(options)
    _check_not_begun(sinks)
    try:
        progress.show(starting(options, sinks))
        with set_by_signals(stopping):
            spark = quiet_session(options.name, how.master, how.config, options.data_dir / LOG)
        with set_by_signals(stopping), FillStatus(spark, options, sinks, progress, stopping) as status:
            directory = directory_of(options)
            done = fill(spark, options, sinks, directory, how.backfill, status)
    finally:
        progress.close()
    if keep:
        done.keep()
    else:
        done.remove()
    return 0


def _check_not_begun(sinks: Sequence[SinkFactory]) -> None:
    """Raise ConfigError for a sink that a query of Spark already writes, before reading anything."""
    for sink in sinks:
        with suppress(Retryable):  # it may be there by then
            if isinstance(find_start(sink), Start):
                raise ConfigError(f"sink {sink.name}: Spark follows it already: run with --engine spark")


def directory_of(options: SparkFeedOptions) -> Path:
    return options.spark.directory or options.data_dir / DIRECTORY
