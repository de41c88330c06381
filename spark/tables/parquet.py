"""Changes merged into a Parquet copy of a table.

Each merge writes the whole copy into a new directory `version=N`, where N is the batch's number, and marks
it as complete by the file `_complete`. So a merge that is interrupted changes nothing, and one that is
repeated has the same result. The previous version stays for its readers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from ...errors import CheckpointError, ConfigError
from ..read.widening import wider_type
from .last_changes import KEY, ROW, last_changes, quoted

_VERSION: Final = re.compile(r"version=(\d+)")
_COMPLETE: Final = "_complete"
_KEPT: Final = 2


def merge_parquet(changes: DataFrame, path: str, *, key: Sequence[str], batch: int) -> None:
    """Apply the typed changes of one table to its copy, in ascending batches; a repeated one does nothing.

    Inserts and updates replace the row of their key, deletes remove it. Columns that the copy lacks are
    added, and null in its other rows; a column has a type that holds the values of both. Raises ConfigError
    for a key, or if a column has no such type, and CheckpointError if a later batch was merged.
    """
    spark = changes.sparkSession
    folder = _Folder(spark, path)
    versions = folder.versions()
    if versions and versions[-1] > batch:
        raise CheckpointError(
            f"{path} has batch {versions[-1]} already, and this is batch {batch}: another query writes "
            "there, or this one lost its checkpointLocation; give it a path of its own"
        )
    if batch in versions:
        return
    last = last_changes(changes, key).persist()
    try:
        rows = last.where(f"{ROW} is not null").select(f"{ROW}.*")
        if versions:
            copy = folder.read(versions[-1])
            columns = _columns(copy.schema, rows.schema)
            rows = _unchanged(copy, last, key).to(columns).unionByName(rows.to(columns))
        rows.write.mode("overwrite").parquet(folder.place(batch))
    finally:
        last.unpersist()
    folder.complete(batch)
    folder.remove(versions[: 1 - _KEPT])


def merged_parquet(spark: SparkSession, path: str) -> DataFrame:
    """Return the newest version of a copy. Raises ConfigError if there is none."""
    folder = _Folder(spark, path)
    versions = folder.versions()
    if not versions:
        raise ConfigError(f"{path}: there is no copy by merge_parquet in it")
    return folder.read(versions[-1])


def _unchanged(rows: DataFrame, last: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the rows whose key isn't in `last`."""
    missing = [name for name in key if name not in rows.columns]
    if missing:
        raise ConfigError(f"key: the copy has no column {missing[0]}; merge with the same key as before")
    keys = last.select(KEY)
    same = [rows[quoted(name)].eqNullSafe(keys[KEY][name]) for name in key]
    return rows.join(keys, same, "left_anti")


def _columns(copy: StructType, rows: StructType) -> StructType:
    """Return the columns of both, those of the copy first, in types that hold the values of both."""
    found = {field.name.lower(): field for field in copy}
    for field in rows:
        older = found.setdefault(field.name.lower(), field)
        wider = wider_type(older.dataType, field.dataType)
        if wider is None:
            names = [kind.dataType.simpleString() for kind in (older, field)]
            raise ConfigError(
                f"column {field.name}: it is {names[0]} in the copy and {names[1]} in the changes, and no "
                "type holds both; load the table into another path"
            )
        found[field.name.lower()] = StructField(older.name, wider)
    return StructType([*found.values()])


class _Folder:
    """The versions in a folder of any file system that Spark knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path.rstrip("/")
        self._hadoop: Any = spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
        settings = spark._jsc.hadoopConfiguration()
        self._files: Any = self._hadoop(self._path).getFileSystem(settings)

    def versions(self) -> list[int]:
        """Return the numbers of the complete versions, ascending."""
        root = self._hadoop(self._path)
        if not self._files.exists(root):
            return []
        found = [_VERSION.fullmatch(status.getPath().getName()) for status in self._files.listStatus(root)]
        numbers = [int(match[1]) for match in found if match]
        return sorted(number for number in numbers if self._files.exists(self._marker(number)))

    def place(self, number: int) -> str:
        return f"{self._path}/version={number}"

    def read(self, number: int) -> DataFrame:
        return self._spark.read.parquet(self.place(number))

    def complete(self, number: int) -> None:
        self._files.create(self._marker(number)).close()

    def remove(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._files.delete(self._marker(number), False)
            self._files.delete(self._hadoop(self.place(number)), True)

    def _marker(self, number: int) -> Any:
        return self._hadoop(f"{self.place(number)}/{_COMPLETE}")
