"""Queries that are started from another thread."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from tidemill.spark.read.schema import envelope_type
from tidemill.testing.progress import joined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


def test_streams_are_written_from_any_thread(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    spark.createDataFrame([], envelope_type()).write.parquet(str(source))
    frame = spark.readStream.schema(envelope_type()).parquet(str(source))
    started: list[StreamingQuery] = []

    def start() -> None:
        writer = frame.writeStream.format("tidemill").option(
            "sink", f"directory://{tmp_path / 'rows'}?format=ndjson"
        )
        started.append(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())

    thread = Thread(target=start)
    thread.start()
    joined(thread)
    assert len(started) == 1
    started[0].stop()
