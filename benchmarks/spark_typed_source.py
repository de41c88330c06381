"""A stream of Spark that yields the batches of files as they are: what Spark itself takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ..spark.data_source import TidemillSource

NAME: Final = "bench-batches"


class BatchesSource(DataSource):
    """A stream of one batch. Option: `path` of an Arrow IPC file."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return _FileStream(self.options["path"])


class _FileStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, path: str) -> None:
        self.path = path

    def initialOffset(self) -> dict[str, object]:  # noqa: N802
        return {"batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:  # noqa: ARG002, N802
        return {"batch": 1}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """There is one batch."""

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        return [InputPartition(0)] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        with pa.memory_map(self.path) as file, pa.ipc.open_file(file) as reader:
            yield from map(reader.get_batch, range(reader.num_record_batches))


def write_batches(path: Path, options: dict[str, str]) -> StructType:
    """Write the batches of a stream of tidemill, up to the source's end, into a file; return their type."""
    source = TidemillSource(options)
    schema = source.schema()
    stream: Any = source.streamReader(schema)
    stream.prepareForTriggerAvailableNow()
    begin = stream.initialOffset()
    end = stream.latestOffset(begin, ReadAllAvailable())
    parts = stream.partitions(begin, end)
    with pa.ipc.new_file(str(path), stream.output.schema) as writer:
        for part in parts:
            for batch in stream.read(part):
                writer.write_batch(batch)
    stream.stop()
    return schema
