"""Supervision of a user's query."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

import tidemill.spark
from tidemill.errors import Retryable, SourceError
from tidemill.testing.progress import eventually, joined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


class Job:
    """A query whose batches raise the given errors, one at each start."""

    def __init__(self, spark: SparkSession, directory: Path, *errors: Exception) -> None:
        self.spark = spark
        self.directory = directory
        self.errors = [*errors]
        self.rows: list[int] = []
        self.starts = 0
        spark.range(3).write.parquet(str(directory / "source"))

    def start(self, **trigger: bool) -> StreamingQuery:
        self.starts += 1
        frame = self.spark.readStream.schema("id LONG").parquet(str(self.directory / "source"))
        writer = frame.writeStream.foreachBatch(self._write)
        writer = writer.option("checkpointLocation", str(self.directory / "checkpoint"))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def _write(self, frame: DataFrame, number: int) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.rows += [row.id for row in frame.collect()]


def test_a_query_is_started_again_after_errors_that_pass(spark: SparkSession, tmp_path: Path) -> None:
    job = Job(spark, tmp_path, Retryable("the target is away", 0.0))
    tidemill.spark.supervise(lambda: job.start(availableNow=True))
    assert (job.starts, sorted(job.rows)) == (2, [0, 1, 2])


def test_a_query_that_has_ended_is_not_stopped(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.streaming import StreamingQuery

    stopped: list[bool] = []
    monkeypatch.setattr(StreamingQuery, "stop", lambda query: stopped.append(query.isActive))
    job = Job(spark, tmp_path)
    tidemill.spark.supervise(lambda: job.start(availableNow=True))
    assert (sorted(job.rows), stopped) == ([0, 1, 2], [])


def test_other_errors_are_raised(spark: SparkSession, tmp_path: Path) -> None:
    job = Job(spark, tmp_path, SourceError("the log is gone"))
    with pytest.raises(SourceError, match="the log is gone"):
        tidemill.spark.supervise(lambda: job.start(availableNow=True))
    assert job.starts == 1


def test_it_stops_the_query(spark: SparkSession, tmp_path: Path) -> None:
    job, stopping = Job(spark, tmp_path), Event()
    thread = Thread(target=tidemill.spark.supervise, args=(job.start,), kwargs={"stopping": stopping})
    thread.start()
    eventually(lambda: len(job.rows) == 3)
    stopping.set()
    joined(thread)
    assert spark.streams.active == []
