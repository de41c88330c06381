"""Reasons that end a backfill's tasks early."""

from __future__ import annotations

import io
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from tidemill.engine.options import feed_options
from tidemill.engine.progress import open_progress
from tidemill.errors import ConfigError, TidemillError
from tidemill.spark.backfill.directory import BackfillDirectory
from tidemill.spark.backfill.fill_status import FillStatus
from tidemill.spark.backfill.tasks import SAID, ReadChunk, collected, run
from tidemill.spark.read.options import read_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_job_that_waits_is_cut_short_once_the_feed_is_to_stop(spark: SparkSession, tmp_path: Path) -> None:
    def wait(_batches: Any) -> Any:
        Event().wait(60)  # or until its worker is ended
        yield from ()

    options = feed_options({"data_dir": str(tmp_path), "source": {"url": "mysql://db", "tables": ["a.*"]}})
    stopping = Event()
    with FillStatus(spark, options, [], open_progress(io.StringIO(), as_json=True), stopping):
        stopping.set()
        with pytest.raises(TidemillError):
            collected(spark, spark.range(1).mapInArrow(wait, SAID))


def test_a_worker_with_another_program_reads_nothing(spark: SparkSession, tmp_path: Path) -> None:
    directory = BackfillDirectory(tmp_path)
    work = ReadChunk(read_options({"source": "mysql://127.0.0.1:1", "tables": "a.*"}), directory, [0])
    work.planner._versions = "tidemill 0.0.1 on Python 3.8"
    with directory.held(), pytest.raises(ConfigError, match=r"the driver runs tidemill 0\.0\.1 on"):
        run(spark, work)
    assert directory.is_stopped
