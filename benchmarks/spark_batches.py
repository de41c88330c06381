"""The cost of a micro-batch with one row, and of a whole query with one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..engine.options import feed_options
from ..spark.capture.capture import opened
from ..spark.capture.options import CaptureOptions
from ..testing.mariadb import MariaDb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TABLES: Final = "tiny.*"
_QUERIES: Final = 5
_WAIT_SECONDS: Final = 60


def fixed_seconds(spark: SparkSession, folder: Path, batches: int) -> dict[str, float]:
    """Return the median seconds of a batch of a stream from a MariaDB into nothing, since Spark began it:
    read from the source (`fixed_seconds`), and through a capture; and those of a query with the trigger
    availableNow from `load` to its end, `first_query_seconds` and the median of later ones."""
    with MariaDb(folder / "mariadb") as server:
        server.execute("CREATE DATABASE tiny", "CREATE TABLE tiny.t (id INT AUTO_INCREMENT PRIMARY KEY)")
        first, *later = [_query(spark, server, folder / f"query-{number}") for number in range(_QUERIES)]
        figures = {"first_query_seconds": first, "query_seconds": statistics.median(later)}
        figures |= {"fixed_seconds": _median(spark, server, folder / "alone", batches, {})}
        with _capture(server, folder) as address:
            taken = _median(spark, server, folder / "captured", batches, {"capture": address})
        return {**figures, "fixed_capture_seconds": taken}


def _query(spark: SparkSession, server: MariaDb, folder: Path) -> float:
    """Return the seconds of a query that reads the log of the source from its begin."""
    server.execute("INSERT INTO tiny.t VALUES ()")
    begun = time.perf_counter()
    options = {"source": server.url(), "tables": TABLES, "startingTs": "earliest"}
    frame = spark.readStream.format("tidemill").options(**options).load()
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    taken = time.perf_counter() - begun
    if not _seconds(query):
        raise RuntimeError("a query with the trigger availableNow read no rows")
    return taken


@contextmanager
def _capture(server: MariaDb, folder: Path) -> Iterator[str]:
    options = feed_options(
        {"data_dir": str(folder / "state"), "source": {"url": server.url(), "tables": [TABLES]}}
    )
    with opened(options, CaptureOptions(listen="127.0.0.1:0")) as capture:
        _until(lambda: capture.buffer.begun)
        yield f"127.0.0.1:{capture.port}"


def _median(spark: SparkSession, server: MariaDb, folder: Path, batches: int, more: dict[str, str]) -> float:
    options = {"source": server.url(), "tables": TABLES, "pollSeconds": "0.01", **more}
    frame = spark.readStream.format("tidemill").options(**options).load()
    query = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        _until(lambda: query.lastProgress is not None)  # the stream has begun
        for number in range(batches + 2):
            server.execute("INSERT INTO tiny.t VALUES ()")
            _until(partial(_has_read, query, number + 1))
        return statistics.median(_seconds(query)[2:])  # the first ones are a warm-up
    finally:
        query.stop()


def _has_read(query: StreamingQuery, rows: int) -> bool:
    return len(_seconds(query)) >= rows


def _seconds(query: StreamingQuery) -> list[float]:
    """Return the seconds of each batch with a row."""
    return [
        progress.durationMs["triggerExecution"] / 1000
        for progress in query.recentProgress
        if progress.numInputRows
    ]


def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"Spark did nothing for {_WAIT_SECONDS} s")
        time.sleep(0.02)
