"""Data sources to compare with: of a capture, read as by a stream's task, of a file with the same rows, and
of one row, which shows what Spark takes for a data source in Python without acknowledgements at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ..spark.capture.captures import captures_of
from ..spark.envelope import ENVELOPE
from ..spark.read.options import READ_FORM, read_options
from ..spark.read.output import Output
from ..spark.read.partition import TaskPartition
from ..spark.read.parts import WHOLE
from ..spark.read.schema import exact_type
from ..spark.read.stream_task import batches
from ..spark.worker import CopiedToWorkers
from .flight import TABLES, TRANSACTION_ROWS, answer, offset


class CaptureSource(DataSource):
    """A data source of a capture. Options: `address`, `rows`, `tasks` (their number), and `values` as in
    tidemill's data source."""

    @classmethod
    def name(cls) -> str:
        return "bench-capture"

    def schema(self) -> StructType:
        return exact_type()

    def reader(self, schema: StructType) -> DataSourceReader:
        return _CaptureReader(self.options, schema)


class _CaptureReader(CopiedToWorkers, DataSourceReader):
    def __init__(self, source_options: Mapping[str, str], schema: StructType) -> None:
        self.options = read_options(
            {
                "source": "mysql://nobody@127.0.0.1:1",  # not needed
                "sourceTimeout": "0",
                "tables": ",".join(TABLES),
                "capture": source_options["address"],
                "values": source_options["values"],
            }
        )
        self.output = Output(self.options, None, schema)
        self.captures = captures_of(self.options, READ_FORM)
        self.rows, self.tasks = int(source_options["rows"]), int(source_options["tasks"])

    def partitions(self) -> Sequence[InputPartition]:
        each = self.rows // self.tasks // TRANSACTION_ROWS * TRANSACTION_ROWS
        bounds = [offset(number * each) for number in range(self.tasks)] + [offset(self.rows)]
        return [TaskPartition(WHOLE, start, end) for start, end in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, TaskPartition)
        yield from batches(self.options, self.output, partition, self.captures)


class FileSource(DataSource):
    """A data source of a file. Options: `path` of an Arrow IPC file, and `tasks`, the number of tasks that
    share its batches."""

    @classmethod
    def name(cls) -> str:
        return "bench-file"

    def schema(self) -> StructType:
        return exact_type()

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return _FileReader(self.options["path"], int(self.options["tasks"]))


class _FileReader(DataSourceReader):
    def __init__(self, path: str, tasks: int) -> None:
        self.path = path
        self.tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(self.path) as file, pa.ipc.open_file(file) as reader:
            count = reader.num_record_batches
            first, last = (count * number // self.tasks for number in (partition.value, partition.value + 1))
            yield from map(reader.get_batch, range(first, last))


class RowSource(DataSource):
    """A data source of one row, whose `id` is 5. Its tasks wait for their input, unlike
    tidemill's; the objects of workers that both use are frozen."""

    @classmethod
    def name(cls) -> str:
        return "bench-row"

    def schema(self) -> str:
        return "id bigint"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return _RowReader()


class _RowReader(DataSourceReader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        yield pa.RecordBatch.from_pydict({"id": pa.array([5], pa.int64())})


def write_file(path: str, address: str, rows: int, *, json: bool) -> None:
    """Write the batches of a capture into a file."""
    with pa.ipc.new_file(path, ENVELOPE) as writer:
        for batch in answer(address, rows, json=json):
            writer.write_batch(batch)
