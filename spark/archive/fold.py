"""The job of archive compaction: the latest change of each key, written as Parquet files again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec import Struct

from ...events import Table
from ...sink.files.layout import DAY, date_of, file_name
from .files import SUFFIX, discard, write_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDER: Final = ("commit_ts", "start_ts", "sequence")
"""Order of a table's changes; no two share all three values."""
FOLDED: Final = "folded"
"""Part of the names of folded files."""

FILE_BYTES: Final = 64 << 20
"""Arrow bytes that a task keeps in memory."""
TASK_BYTES: Final = 128 << 20
"""Parquet bytes that one task sorts, partly on disk, through Spark."""

_MADE: Final = "path string"


class SchemaFiles(Struct, frozen=True):
    """Files with the same columns."""

    table: Table
    schema: bytes
    """Schema of the files, serialized by Arrow."""
    paths: list[str]


def fold(spark: SparkSession, layouts: Sequence[SchemaFiles], making: Path, folder: str) -> int:
    """Write the latest row of each existing key to files under `making`; return the number of rows."""
    frames = [spark.read.parquet(*layout.paths) for layout in layouts]
    winners = _winners([events(*pair) for pair in zip(layouts, frames, strict=True)]).persist()
    try:
        for number, (layout, frame) in enumerate(zip(layouts, frames, strict=True)):
            rows = frame.join(winners, list(ORDER), "left_semi").select("source", *ORDER, "after")
            tasks = sum(Path(path).stat().st_size for path in layout.paths) // TASK_BYTES + 1
            _write(rows, tasks, layout.schema, making, f"{folder}/{number}")
        return int(winners.count())
    finally:
        winners.unpersist()


def events(layout: SchemaFiles, frame: DataFrame) -> DataFrame:
    """Expand each change into its effects on keys: one row written, another deleted."""
    from pyspark.sql import functions as f

    names = [layout.table.columns[index].name.replace("`", "``") for index in layout.table.key]
    keys = {image: f.struct(*[f.col(f"{image}.`{name}`") for name in names]) for image in ("before", "after")}
    before, after = f.col("before"), f.col("after")
    moved = before.isNotNull() & (after.isNull() | ~keys["before"].eqNullSafe(keys["after"]))
    said = f.array_compact(
        f.array(
            f.when(moved, f.struct(keys["before"].alias("key"), f.lit(False).alias("is_there"))),
            f.when(after.isNotNull(), f.struct(keys["after"].alias("key"), f.lit(True).alias("is_there"))),
        )
    )
    return frame.select(*ORDER, f.explode(said).alias("said")).select(*ORDER, "said.key", "said.is_there")


def _winners(said: Sequence[DataFrame]) -> DataFrame:
    """Return the last change of each key that still has a row."""
    from pyspark.sql import functions as f

    together = reduce(lambda one, other: one.unionByName(other), said)
    last = together.groupBy("key").agg(f.max(f.struct(*ORDER, "is_there")).alias("last"))
    return last.filter("last.is_there").select(*[f"last.{name}" for name in ORDER])


def _write(rows: DataFrame, tasks: int, schema: bytes, making: Path, where: str) -> None:
    """Write rows to files in the order of their changes, each with those of one day."""
    ordered = rows.repartitionByRange(tasks, *ORDER).sortWithinPartitions(*ORDER)
    made = ordered.mapInArrow(_writer(str(making), where, schema), _MADE).collect()
    folder = where.partition("/")[0]
    for path in (Path(row.path) for row in made):
        target = making / folder / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    for attempts in making.glob("attempt-*"):  # including those of failed attempts
        discard(attempts)


def _writer(making: str, where: str, schema: bytes) -> Callable[[Iterator[object]], Iterator[object]]:
    """Return the work of a task; each attempt writes into its own folder."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        attempt = Path(making) / f"attempt-{context.taskAttemptId()}"
        name = f"{FOLDED}-{where.partition('/')[2]}-{context.partitionId()}"
        paths = [str(path) for path in write_rows(batches, schema, attempt, name)]
        yield pa.RecordBatch.from_arrays([pa.array(paths, pa.string())], ["path"])

    return write


def write_rows(batches: Iterator[pa.RecordBatch], schema: bytes, folder: Path, name: str) -> Iterator[Path]:
    """Write ordered rows to files; a file holds the rows of one day, up to about FILE_BYTES."""
    numbers = count()
    target = pa.ipc.read_schema(pa.py_buffer(schema))
    held: list[pa.RecordBatch] = []
    for batch in _by_day(batches):
        if held and (_day(held[0]) != _day(batch) or sum(one.nbytes for one in held) >= FILE_BYTES):
            yield _file(held, target, folder, f"{name}-{next(numbers)}")
            held = []
        held.append(batch)
    if held:
        yield _file(held, target, folder, f"{name}-{next(numbers)}")


def _by_day(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        days = batch.column("commit_ts").to_numpy() // DAY
        begin = 0
        while begin < batch.num_rows:
            end = int(days.searchsorted(days[begin], "right"))
            yield batch.slice(begin, end - begin)
            begin = end


def _day(batch: pa.RecordBatch) -> str:
    return date_of(batch.column("commit_ts")[0].as_py())


def _file(held: list[pa.RecordBatch], target: pa.Schema, folder: Path, name: str) -> Path:
    rows = pa.Table.from_batches(held)
    ts = rows.column("commit_ts")
    path = folder / f"date={_day(held[0])}" / file_name(ts[0].as_py(), ts[-1].as_py(), name, SUFFIX)
    write_file(path, as_loaded(rows, target))
    return path


def as_loaded(rows: pa.Table, target: pa.Schema) -> pa.Table:
    """Return the rows as inserts of a snapshot, in the archive's columns."""
    count_ = rows.num_rows
    columns = {
        "source": rows.column("source").cast(target.field("source").type),
        **{name: rows.column(name) for name in ORDER},
        "op": pa.repeat(pa.scalar("insert"), count_),
        "snapshot": pa.repeat(pa.scalar(True), count_),
        "before": pa.nulls(count_, target.field("before").type),
        "after": rows.column("after").cast(target.field("after").type),
    }
    return pa.Table.from_arrays([columns[name] for name in target.names], schema=target)
