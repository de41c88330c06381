"""`df.write` and `df.writeStream` with `.format("tidemill")`: rows of the raw envelope into a sink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ...errors import ConfigError
from ..envelope import EXACT
from ..read.schema import envelope_type
from ..summary import summarised
from ..worker import CopiedToWorkers
from .files import FilesOfQueries, Made
from .options import WriteOptions, write_options
from .order import ORDER
from .place import task_place
from .task import write_partition


def batch_writer(texts: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceWriter:
    """Return a writer. Raises ConfigError for options, and for columns that aren't the envelope's."""
    options = _checked(texts, schema, overwrite)
    if options.is_files and options.id:
        raise ConfigError(
            "option id: a directory of files doesn't know what it has; leave it out, or write a stream"
        )
    return BatchWriter(options)


def stream_writer(texts: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
    """Return a writer. Raises the same as `batch_writer`."""
    return StreamWriter(_checked(texts, schema, overwrite))


class BatchWriter(CopiedToWorkers, DataSourceArrowWriter):
    """Created in the driver; tasks get copies."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options
        self.job = str(uuid4())

    @summarised
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_partition(self.options, task_place(self.options, self.job), iterator)

    @summarised
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _commit(self.options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self.options.is_files:
            made = [task for task in _made(messages) if task.place.query == self.job]
            FilesOfQueries(self.options).discard(made)  # in a stream's batch a later commit does it


class StreamWriter(CopiedToWorkers, DataSourceStreamArrowWriter):
    """Created in the driver for each batch; tasks get copies."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options

    @summarised
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_partition(self.options, task_place(self.options, ""), iterator)

    @summarised
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        _commit(self.options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Leave the files to the next commit, which removes them unless a saved state has them."""


def _checked(texts: Mapping[str, str], schema: StructType, overwrite: bool) -> WriteOptions:
    options = write_options(texts)
    if overwrite:
        raise ConfigError('mode "overwrite": changes are added to what a sink has; use mode("append")')
    _check_schema(schema)
    if options.is_files:
        FilesOfQueries(options).prepare()
    return options


def _check_schema(schema: StructType) -> None:
    wanted = {field.name: field.dataType for field in envelope_type()}
    types = {field.name: field.dataType for field in schema}
    for name in dict.fromkeys((*ORDER, *EXACT)):
        if types.get(name) != wanted[name]:
            has = types[name].simpleString() if name in types else "missing"
            raise ConfigError(
                f"column {name} is {has}: a sink is given rows of the raw envelope, as the option tables "
                "reads them, with all their columns; rows of one table with its own columns can't be written"
            )


def _made(messages: Sequence[WriterCommitMessage | None]) -> list[Made]:
    return [message for message in messages if isinstance(message, Made)]


def _commit(options: WriteOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    if options.is_files:
        FilesOfQueries(options).publish(_made(messages))
