"""`tidemill backfill feed.toml`: loads the sinks of a feed by Spark; then `tidemill run` goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from ...errors import ConfigError
from ...options import FeedOptions, feed_options, open_sinks
from ...status import StatusFile
from .. import session
from ..options import SOURCE_PREFIX, ReadOptions, read_options
from .backfill import backfill
from .backfilled import Backfilled
from .options import BackfillOptions
from .progress import BackfillProgress, LogLines, ProgressBar, Report

MASTER: Final = "local[2]"
_QUIET: Final = {"spark.log.level": "OFF"}
_NOT_READ: Final = ("url", "tables", "snapshot", "start_ts", "position", "server_id")
"""Of a feed's source section: said otherwise, or of no use to tasks, each of which is a client of its own."""


def run(
    found: Mapping[str, Any],
    *,
    directory: Path | None = None,
    master: str = MASTER,
    settings: BackfillOptions | None = None,
    keep: bool = False,
    config: Mapping[str, str] | None = None,
) -> int:
    """Backfill the feed of these tables of a feed.toml into its sinks; 0, the exit status.

    The files go to `directory`, by default `backfill` in the feed's data directory, and are removed once all
    sinks have them, unless `keep`. Raises ConfigError (also while the feed runs), Retryable and Fatal; called
    again it goes on.
    """
    options = feed_options(found)
    if not options.sinks and not keep:
        raise ConfigError("sink: none is named, and the files would be removed: name one, or keep the files")
    options.data_dir.mkdir(parents=True, exist_ok=True)
    status = StatusFile(options.data_dir)
    with ExitStack() as stack:
        status.claim()  # its feed doesn't run meanwhile
        stack.callback(status.release)
        spark = session(options.name, master, {**_QUIET, **(config or {})})
        bar = ProgressBar(sys.stderr) if sys.stderr.isatty() else None
        report = stack.enter_context(bar) if bar is not None else LogLines(sys.stderr)
        reads = _reads(found["source"], options)
        done = backfill(spark, reads, directory or options.data_dir / "backfill", settings, report)
        done.load(open_sinks(options), _loading(done, report))
    if not keep:
        done.remove()
    return 0


def _reads(section: Mapping[str, Any], options: FeedOptions) -> ReadOptions:
    source = {SOURCE_PREFIX + key: _text(value) for key, value in section.items() if key not in _NOT_READ}
    given = {"source": section["url"], "tables": ",".join(options.tables.patterns), "name": options.name}
    return read_options(given | source)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _loading(done: Backfilled, report: Report) -> Callable[[int], object]:
    """Tells of the rows of one sink."""

    def told(rows: int) -> None:
        chunks = done.chunks * rows // max(1, done.rows)
        report(BackfillProgress("loading", min(chunks, done.chunks), done.chunks, rows, done.rows, None))

    return told
