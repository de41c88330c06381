"""Copies of readers, writers and data sources in Spark's Python workers."""

from __future__ import annotations

import gc
import inspect
import os
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.serializers import CPickleSerializer
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

import tidemill.spark
from tidemill.dialects.dialect import Dialect
from tidemill.dialects.registry import DIALECTS
from tidemill.spark import worker
from tidemill.spark.data_source import PushingSource, TidemillSource
from tidemill.spark.read.batch_reader import BatchReader, PushingReader
from tidemill.spark.read.options import read_options
from tidemill.spark.read.output import Output
from tidemill.spark.read.schema import exact_type
from tidemill.spark.read.stream_reader import StreamReader
from tidemill.spark.run.source import BoundedReader, RunSource
from tidemill.spark.write.options import write_options
from tidemill.spark.write.writer import BatchWriter, StreamWriter
from tidemill.testing.mariadb_client import Client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIVEN = {"source": "mysql://nobody@127.0.0.1:1", "tables": "shop.*"}
"""Options of a server that isn't needed."""
SOURCES = (TidemillSource, PushingSource, RunSource)
READERS = (BatchReader, PushingReader, StreamReader)
WRITERS = (BatchWriter, StreamWriter)
COPIED = (*SOURCES, *READERS, BoundedReader, *WRITERS)
BASES = (DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter, DataSourceStreamWriter)


def original(kind: Callable[..., Any]) -> Any:
    if kind in SOURCES:
        return kind(GIVEN)
    if kind in WRITERS:
        return kind(write_options({"sink": "sqlite:////nowhere/copy.db"}))
    options = read_options(GIVEN)
    more = ("", "lease", 7) if kind is BoundedReader else ()
    return kind(options, Output(options, None, exact_type()), *more)


@pytest.mark.parametrize("kind", COPIED)
def test_a_copy_acknowledges_and_has_the_same_options(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(worker, "acknowledge", lambda: calls.append("acknowledge"))
    made = original(kind)
    pickled = CPickleSerializer().dumps(made)
    assert calls == []
    copy = CPickleSerializer().loads(pickled)
    assert calls == ["acknowledge"]
    assert type(copy) is kind
    assert copy.options == made.options
    assert copy.__dict__.keys() == made.__dict__.keys()


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if dialect.traits.is_shared])
def test_writers_to_every_dialect_are_copied(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "acknowledge", lambda: None)
    options = write_options({"sink": dialect.examples[0].replace("user@host", "127.0.0.1:1")})
    for kind in WRITERS:
        copy = CPickleSerializer().loads(CPickleSerializer().dumps(kind(options)))
        assert copy.options == options


def test_every_class_that_spark_copies_is_among_them() -> None:
    found = set()
    for module in pkgutil.walk_packages(tidemill.spark.__path__, "tidemill.spark."):
        for kind in vars(import_module(module.name)).values():
            if inspect.isclass(kind) and issubclass(kind, BASES) and kind.__module__ == module.name:
                found.add(kind)
    assert found == set(COPIED)


def counting(path: Path) -> type[TidemillSource]:
    """Return a source whose tasks add their number of frozen objects to a file; it is pickled whole."""

    class CountingReader(BatchReader):
        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            with path.open("a") as file:
                print(os.getpid(), gc.get_freeze_count(), file=file)
            yield from BatchReader.read(self, partition)

    class CountingSource(TidemillSource):
        @classmethod
        def name(cls) -> str:
            return "counting"

        def reader(self, schema: StructType) -> DataSourceReader:
            return CountingReader(*self._batch(schema))

    return CountingSource


def test_spark_reuses_workers_and_they_freeze(spark: SparkSession, sql: Client, tmp_path: Path) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY)")
    sql("INSERT INTO item VALUES (5)")
    path = tmp_path / "counts"
    spark.dataSource.register(counting(path))
    frame = spark.read.format("counting").options(source=sql.server.url(), table=f"{sql.database}.item")
    counts: dict[str, list[int]] = {}
    for _ in range(20):  # Spark takes one of its idle workers after the other
        assert frame.load().count() == 1
        pid, count = path.read_text().splitlines()[-1].split()
        counts.setdefault(pid, []).append(int(count))
        if len(counts[pid]) > 1:
            break
    assert len(counts[pid]) == 2
    assert counts[pid][1] > 10_000
