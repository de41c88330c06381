"""Check that the executors share the driver's directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from .directory import Directory
from .errors import NotLoadable
from .tasks import SAID, collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_shared(spark: SparkSession, directory: Path) -> None:
    """Raise NotLoadable if an executor doesn't see the directory; on one machine all do."""
    if (spark.sparkContext.master or "").startswith("local"):
        return
    tasks = spark.sparkContext.defaultParallelism
    with Directory(directory).held():
        path = directory.absolute() / f"seen-{uuid4().hex}"
        path.touch()
        try:
            collected(spark, spark.range(0, tasks, 1, tasks).mapInArrow(_Sees(path), SAID))
        finally:
            path.unlink()


class _Sees:
    """Sent to the executors by value."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        lost = f"directory: executors don't see {self._path.parent}: name one that all share"
        said = [] if self._path.exists() else [lost]
        columns = [pa.array([NotLoadable.__name__] * len(said), pa.string()), pa.array(said, pa.string())]
        yield pa.RecordBatch.from_arrays(columns, ["kind", "text"])
