"""The tasks of a backfill, and running them from the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import uuid4

import pyarrow as pa

from ... import errors
from ...errors import Fatal, InvariantViolated, Retryable, TidemillError
from ...puller.mysql.options import MysqlOptions
from ...snapshot.errors import TableAltered
from ..planner import Planner
from ..read.options import ReadOptions
from ..read.scratch import scratch
from ..run.errors import explain
from .chunk_file import ChunkFiles, ChunkWriter
from .directory import MERGED, READ, BackfillDirectory
from .errors import NotLoadable
from .merge import MergedChange, merge
from .plan import BackfillPlan
from .retry_deadline import RetryDeadline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAID: Final = "kind string, text string"
_SAID: Final = pa.schema([("kind", pa.string()), ("text", pa.string())])
_Said: TypeAlias = tuple[str, str]
_DONE: Final[_Said] = ("", "")
_ALTERED: Final = "altered"
_STOPPED: Final[_Said] = ("stopped", "")


class _Work:
    """Work done once per number, each in its own task. Sent to the executors by value."""

    def __init__(self, options: ReadOptions, directory: BackfillDirectory, numbers: Sequence[int]) -> None:
        self.options = options
        self.directory = directory
        self.numbers = numbers
        self.planner = Planner()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            said = [self._guarded(self.numbers[at]) for at in batch.column(0).to_pylist()]
            yield _batch(said)

    def _guarded(self, number: int) -> _Said:
        """Run the work and return a fatal error as text: Spark would retry it and lose the error's class."""
        if self.directory.is_stopped:
            return _STOPPED
        try:
            self.planner.check()
            self._patiently(number)
        except TableAltered as error:
            return _ALTERED, error.name
        except TidemillError as error:
            self.directory.stop()
            return type(error).__name__, str(error)
        return _DONE

    def _patiently(self, number: int) -> None:
        patience = RetryDeadline(self.options.source_timeout)
        plan = self.directory.plan()
        if plan is None:
            raise InvariantViolated(
                f"{self.directory.path} has no plan: do all executors see this directory?"
            )
        while True:
            try:
                return self.do(plan, number, patience)
            except Retryable as error:
                patience.wait(error)

    def do(self, plan: BackfillPlan, number: int, patience: RetryDeadline) -> None:
        raise NotImplementedError


class ReadChunk(_Work):
    """Reads chunks from the source."""

    def do(self, plan: BackfillPlan, number: int, patience: RetryDeadline) -> None:  # noqa: ARG002
        if self.directory.record(READ, number) is not None:
            return  # the task was killed after its result and before its end
        self.options.reading.read_chunk(self.options.source_options, self.directory, plan, number)


class CatchUp(_Work):
    """Reads later changes from the binlog, in one task."""

    def __init__(self, options: ReadOptions, directory: BackfillDirectory, until: str) -> None:
        super().__init__(options, directory, [0])
        self.until = until

    def do(self, plan: BackfillPlan, number: int, patience: RetryDeadline) -> None:  # noqa: ARG002
        from .catch_up import collect

        source = self.options.source_as(MysqlOptions)
        records = self.directory.records(READ, [chunk.number for _, chunk in plan.chunks()])
        collect(source, self.directory, plan, records, self.until, patience)


class MergeChunks:
    """Merges chunks with their sorted changes, one chunk after the other."""

    def __init__(self, directory: BackfillDirectory, until: str) -> None:
        self.directory = directory
        self.until = until
        self.planner = Planner()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = self.directory.plan()
        assert plan is not None
        for number, lines in groupby(_lines(batches), key=lambda line: line[0]):
            changes = (MergedChange(key, change) for _, key, change in lines)
            try:
                self.planner.check()
                self._merge(plan, number, changes)
            except TidemillError as error:
                yield _batch([(type(error).__name__, str(error))])
                return
        yield _batch([_DONE])

    def _merge(self, plan: BackfillPlan, number: int, changes: Iterator[MergedChange]) -> None:
        directory = self.directory
        table, chunk = plan.find(number)
        record = directory.record(READ, number)
        assert record is not None
        writer = ChunkWriter(directory, MERGED, plan, table, number)
        with scratch(directory.scratch) as folder, ChunkFiles(directory, [record], folder) as files:
            try:
                merge(plan.source, table, files.pieces(plan, table, chunk), changes, writer)
                writer.finish(self.until, self.until)
            except BaseException:
                writer.discard()
                raise


def _lines(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes, bytes]]:
    for batch in batches:
        names = ("chunk", "key", "change")
        yield from zip(*[batch.column(name).to_pylist() for name in names], strict=True)


def _batch(said: list[_Said]) -> pa.RecordBatch:
    columns = list(zip(*said, strict=True)) or [(), ()]
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=_SAID)


# --- on the driver


def run(spark: SparkSession, work: ReadChunk | CatchUp) -> list[str]:
    """Run the work for every number; return the names of altered tables. Raises the tasks' errors."""
    count = len(work.numbers)
    work.directory.go()
    return collected(spark, spark.range(0, count, 1, count).mapInArrow(work, SAID))


def collected(spark: SparkSession, frame: DataFrame) -> list[str]:
    """Return the altered tables from the tasks' results. Raises the first error among them."""
    with _cancelled_at_end(spark):
        try:
            said = frame.collect()
        except Exception as error:
            raise explain(error, "the backfill's tasks") from error
    return _check([(row.kind, row.text) for row in said])


def _check(said: Sequence[_Said]) -> list[str]:
    """Return the altered tables. Raises the first error."""
    for kind, text in said:
        if kind not in ("", _ALTERED, "stopped"):
            known = {**vars(errors), NotLoadable.__name__: NotLoadable}
            error_type: Callable[[str], BaseException] = known.get(kind, Fatal)
            raise error_type(text)
    return sorted({text for kind, text in said if kind == _ALTERED})


@contextmanager
def _cancelled_at_end(spark: SparkSession) -> Iterator[None]:
    """Cancel the tasks, and so their connections, when the driver stops waiting."""
    tag = f"tidemill-backfill-{uuid4().hex}"
    spark.addTag(tag)
    try:
        yield
    except BaseException:
        with suppress(Exception):
            spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)
