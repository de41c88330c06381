"""Changes merged into a Parquet copy of a table.

Each merge writes the whole copy into a directory of its own, `version=N.TOKEN`, where N is the batch's
number. The copy counts once the file `_version-N` names that directory, which only one merge can create. So a
merge that is interrupted changes nothing, one that is repeated has the same result, and of two at once one
fails. The previous version stays for its readers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from ...errors import CheckpointError, ConfigError
from ...events import Ddl, Table
from .alteration import NONE, alteration, check_creation
from .columns import check_columns
from .last_changes import KEY, ROW, last_changes, quoted
from .table_changes import Order, RowStep, TableChanges, changes_of, check_key, key_of

_MARKER: Final = re.compile(r"_version-(\d+)")
_DIRECTORY: Final = re.compile(r"version=(\d+)\.\w+")
_KEPT: Final = 2


class _Version(Struct, frozen=True):
    """Content of a marker."""

    directory: str
    base: int | None
    """Number of the version that it was made of; None for the first one."""
    end: Order
    """Order of the batch's last change."""
    table: Table | None
    """The copy's definition in the source; None if it isn't known."""


def merge_parquet(
    changes: DataFrame | TableChanges, path: str, *, key: Sequence[str] | None = None, batch: int
) -> None:
    """Apply the changes of one table to its copy, in ascending batches; a repeated one does nothing.

    Inserts and updates replace the row of their key, by default the primary key, deletes remove it. Schema
    changes have the effect that they had in the source, or raise SourceError, and so do columns that differ
    from the copy's without one. Raises ConfigError for a key, and CheckpointError if the copy has a later
    batch, or other changes of this one. After an error the copy is as before.
    """
    told = changes_of(changes)
    folder = _Folder(told.spark, path)
    versions = folder.versions()
    base = versions[-1] if versions else None
    if batch in versions and folder.version(batch).end == told.end:
        return
    if base is not None and base >= batch:
        raise CheckpointError(_other(path, base, batch))
    copy = _Copy(told, folder, None if base is None else folder.version(base), key)
    try:
        for step in told.steps:
            copy.apply(step)
        if copy.frame is None:
            return
        version = _Version(f"version={batch}.{uuid4().hex[:12]}", base, told.end, copy.table)
        copy.frame.write.mode("error").parquet(folder.place(version))
    finally:
        copy.close()
    folder.complete(batch, version)
    folder.clean()


def merged_parquet(spark: SparkSession, path: str) -> DataFrame:
    """Return the newest version of a copy. Raises ConfigError if there is none."""
    folder = _Folder(spark, path)
    versions = folder.versions()
    if not versions:
        raise ConfigError(f"{path}: there is no copy by merge_parquet in it")
    return folder.read(folder.version(versions[-1]))


class _Copy:
    """The rows of a copy, with the changes so far."""

    def __init__(
        self, changes: TableChanges, folder: _Folder, base: _Version | None, key: Sequence[str] | None
    ) -> None:
        self.frame = None if base is None else folder.read(base)
        self.table = None if base is None else base.table
        self._changes = changes
        self._key = key
        self._persisted: list[DataFrame] = []

    def close(self) -> None:
        for frame in self._persisted:
            frame.unpersist()

    def apply(self, step: RowStep | Ddl) -> None:
        if isinstance(step, Ddl):
            self._alter(step)
        else:
            self._merge(step)

    def _merge(self, step: RowStep) -> None:
        key = key_of(self._changes, step, self._key)
        last = last_changes(step.frame, key).persist()
        self._persisted.append(last)
        rows = last.where(f"{ROW} is not null").select(f"{ROW}.*")
        if self.frame is not None:
            columns = check_columns(
                self._changes.name, self.frame.schema, rows.schema, self.table, step.table
            )
            rows = _unchanged(self.frame, last, key).to(columns).unionByName(rows.to(columns))
        self.frame = rows
        self.table = step.table

    def _alter(self, ddl: Ddl) -> None:
        """Apply a schema change. Raises SourceError if its effect on the copy isn't known exactly."""
        frame = self.frame
        if frame is None:  # later rows have the columns
            check_creation(ddl)
            return
        effect = alteration(ddl, self.table, frame.columns)
        check_key(self._key, effect)
        if effect == NONE:
            return
        effect.check_nulls(frame, ddl)
        self.frame = effect.applied(frame)
        self.table = None if self.table is None else effect.definition(self.table)


def _unchanged(rows: DataFrame, last: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the rows whose key isn't in `last`."""
    keys = last.select(KEY)
    same = [rows[quoted(name)].eqNullSafe(keys[KEY][name]) for name in key]
    return rows.join(keys, same, "left_anti")


def _other(path: str, present: int, batch: int) -> str:
    return (
        f"{path} has batch {present} already, and this is batch {batch} with other changes: another query "
        "writes there, or this one lost its checkpointLocation; give it a path of its own"
    )


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
        return sorted(int(match[1]) for name in self._names() if (match := _MARKER.fullmatch(name)))

    def version(self, number: int) -> _Version:
        stream = self._files.open(self._marker(number))
        try:
            return msgspec.json.decode(bytes(stream.readAllBytes()), type=_Version)
        finally:
            stream.close()

    def place(self, version: _Version) -> str:
        return f"{self._path}/{version.directory}"

    def read(self, version: _Version) -> DataFrame:
        return self._spark.read.parquet(self.place(version))

    def complete(self, number: int, version: _Version) -> None:
        """Make a version count. Raises CheckpointError if another merge has added one since its base."""
        written = self._hadoop(f"{self.place(version)}/_version")
        stream = self._files.create(written, False)
        stream.write(bytearray(msgspec.json.encode(version)))
        stream.close()
        marker = self._marker(number)
        is_own = not self._files.exists(marker) and self._files.rename(written, marker)
        since = [one for one in self.versions() if version.base is None or one > version.base]
        if is_own and since == [number] and self.version(number) == version:
            return
        if is_own and self.version(number) == version:
            self._files.delete(marker, False)
        self._files.delete(self._hadoop(self.place(version)), True)
        if since == [number] and self.version(number).end == version.end:
            return  # another attempt at the same merge was faster
        others = [one for one in since if one != number or not is_own]
        raise CheckpointError(_other(self._path, max(others, default=number), number))

    def clean(self) -> None:
        """Remove all versions but the newest, and what interrupted merges left before them."""
        versions = self.versions()
        for number in versions[:-_KEPT]:
            self._files.delete(self._marker(number), False)
        kept = {self.version(number).directory for number in versions[-_KEPT:]}
        for name in self._names():
            match = _DIRECTORY.fullmatch(name)
            if match and int(match[1]) < versions[-1] and name not in kept:
                self._files.delete(self._hadoop(f"{self._path}/{name}"), True)

    def _names(self) -> list[str]:
        root = self._hadoop(self._path)
        if not self._files.exists(root):
            return []
        return [status.getPath().getName() for status in self._files.listStatus(root)]

    def _marker(self, number: int) -> object:
        return self._hadoop(f"{self._path}/_version-{number}")
