"""Loading a feed's sinks by a backfill."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from ...engine.options import FeedOptions
from ...engine.status import BackfillProgress
from ...errors import TidemillError
from ...sink import SinkFactory
from ..run.feed_reads import feed_reads
from .backfill import backfill
from .backfilled import Backfilled
from .directory import BackfillDirectory
from .errors import NotLoadable
from .fill_status import FillStatus
from .load import PATIENCE_SECONDS
from .options import BackfillOptions
from .tasks import SAID, collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class BackfillStopped(TidemillError):
    """The load was stopped before its end; the same call continues it."""


def fill(
    spark: SparkSession,
    options: FeedOptions,
    sinks: Sequence[SinkFactory],
    directory: Path,
    settings: BackfillOptions,
    status: FillStatus,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Backfilled:
    """Read all rows of the feed's tables into `directory`, and from there into the sinks.

    Loaded sinks stay as they are. After a kill the same call continues. A target that can't be written to is
    retried for `patience_seconds`. Raises NotLoadable, Stopped, ConfigError, Retryable and Fatal.
    """
    try:
        check_shared(spark, directory)
        done = backfill(spark, feed_reads(options), directory, settings, status)
        done.load(sinks, _loading(done, status), patience_seconds)
    except TidemillError as error:
        if status.stopping.is_set():  # jobs under way were cancelled
            raise BackfillStopped("stopped before all rows were loaded: call it again to go on") from error
        raise
    return done


def _loading(done: Backfilled, status: FillStatus) -> Callable[[int], object]:
    """Return a callback that reports one sink's rows and raises Stopped."""

    def told(rows: int) -> None:
        if status.stopping.is_set():
            raise BackfillStopped("")
        chunks = done.chunks * rows // max(1, done.rows)
        status(BackfillProgress("loading", min(chunks, done.chunks), done.chunks, rows, done.rows, None))

    return told


def check_shared(spark: SparkSession, directory: Path) -> None:
    """Raise NotLoadable if an executor doesn't see the directory; on one machine all do."""
    if (spark.sparkContext.master or "").startswith("local"):
        return
    tasks = spark.sparkContext.defaultParallelism
    with BackfillDirectory(directory).held():
        path = directory.absolute() / f"seen-{uuid4().hex}"
        path.touch()
        try:
            collected(spark, spark.range(0, tasks, 1, tasks).mapInArrow(_Sees(path), SAID))
        finally:
            path.unlink()


class _Sees:
    """Sent to the executors by value."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        lost = f"directory: executors don't see {self._path.parent}: name one that all share"
        said = [] if self._path.exists() else [lost]
        columns = [pa.array([NotLoadable.__name__] * len(said), pa.string()), pa.array(said, pa.string())]
        yield pa.RecordBatch.from_arrays(columns, ["kind", "text"])
