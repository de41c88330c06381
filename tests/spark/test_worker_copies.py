"""Copies of readers and writers in Spark's Python workers."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from pyspark.serializers import CPickleSerializer
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

import tidemill.spark
from tidemill.spark import worker
from tidemill.spark.read.batch_reader import BatchReader, PushingReader
from tidemill.spark.read.options import read_options
from tidemill.spark.read.output import Output
from tidemill.spark.read.schema import exact_type
from tidemill.spark.read.stream_reader import StreamReader
from tidemill.spark.run.source import BoundedReader
from tidemill.spark.write.options import write_options
from tidemill.spark.write.writer import BatchWriter, StreamWriter

GIVEN = {"source": "mysql://nobody@127.0.0.1:1", "tables": "shop.*"}
"""Options of a server that isn't needed."""
READERS = (BatchReader, PushingReader, StreamReader)
WRITERS = (BatchWriter, StreamWriter)
COPIED = (*READERS, BoundedReader, *WRITERS)
BASES = (DataSourceReader, DataSourceStreamReader, DataSourceWriter, DataSourceStreamWriter)


def original(kind: Callable[..., Any]) -> Any:
    if kind in WRITERS:
        return kind(write_options({"sink": "sqlite:////nowhere/copy.db"}))
    options = read_options(GIVEN)
    more = ("", "lease") if kind is BoundedReader else ()
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


def test_every_class_that_spark_copies_is_among_them() -> None:
    found = set()
    for module in pkgutil.walk_packages(tidemill.spark.__path__, "tidemill.spark."):
        for kind in vars(import_module(module.name)).values():
            if inspect.isclass(kind) and issubclass(kind, BASES) and kind.__module__ == module.name:
                found.add(kind)
    assert found == set(COPIED)
