"""The ways of `ways`, by queries of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from tidemill.spark.data_source import TidemillSource
from tidemill.spark.offsets.offset import Offset
from tidemill.spark.read.options import read_options
from tidemill.spark.read.stream_reader import StreamReader

from .job import Job
from .ways import Found

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def batch(spark: SparkSession, options: dict[str, Any]) -> Found:
    reader = spark.read.format("tidemill")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return [_parts(reader.load())]


def stream(spark: SparkSession, directory: Path, options: dict[str, Any], borders: Sequence[Offset]) -> Found:
    """Read a micro-batch between each offset and the next."""
    spark.dataSource.register(_cutting(borders))
    job = _Kept(spark, directory, **options)
    job.run()
    return [job.batches[number] for number in sorted(job.batches)]


class _Kept(Job):
    """As Arrow, by partition."""

    format = "cutting"

    def _keep(self, frame: DataFrame, number: int) -> None:
        self.batches[number] = _parts(frame)


def _parts(frame: DataFrame) -> list[pa.Table]:
    """The rows by partition, without those partitions that have none."""
    from pyspark.sql.functions import spark_partition_id

    rows = frame.withColumn("partition", spark_partition_id()).toArrow()
    numbers = sorted(set(rows["partition"].to_pylist()))
    return [rows.filter(pc.equal(rows["partition"], n)).drop_columns(["partition"]) for n in numbers]


def _cutting(borders: Sequence[Offset]) -> type[TidemillSource]:
    """Return a source with the given ends of batches; being local, it is pickled whole."""

    class CuttingReader(StreamReader):
        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
            ahead = [offset for offset in borders if offset.ts > start["ts"]]
            if not ahead:
                return start
            self._end = ahead[0]
            return StreamReader.latestOffset(self, start, limit)

    class CuttingSource(TidemillSource):
        @classmethod
        def name(cls) -> str:
            return "cutting"

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            options = read_options(self.options)
            return CuttingReader(options, self._output(options, schema))

    return CuttingSource
