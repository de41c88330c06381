"""The analysis of a lake: files and logs by delta-rs, keys and the time of a read by Spark."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from msgspec import Struct

from ...actors import SystemClock
from ...events import Table
from ...sink.files.parquet_columns import TABLE
from ..archive.fold import SchemaFiles, events
from .lake import LOG, Lake
from .report import HotKey, LakePartition, LakeReport, LakeTable, TableKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGET_BYTES: Final = 128 << 20
"""Size of a joined file: a row group or two, and more than a minute of most feeds."""
OPEN_BYTES: Final = 4 << 20
"""Cost of opening a file, in bytes that are read meanwhile: Spark's spark.sql.files.openCostInBytes."""
SAMPLE_BYTES: Final = 64 << 20
SAMPLE_FILES: Final = 200
"""Part of a table that is read to measure a read."""
HOT_KEYS: Final = 5


class _File(Struct, frozen=True):
    """A file of a table's present version."""

    path: str
    date: str
    size: int
    rows: int


def analyze_lake(
    spark: SparkSession, lake: Lake, keep_hours: int = 168, target_bytes: int = TARGET_BYTES
) -> LakeReport:
    """Return figures of each table. Nothing is changed; the feed may run.

    `keep_hours` is the time for which files of older versions are to be kept. Raises as delta-rs and Spark
    do.
    """
    unannounced = lake.unannounced()
    clock = SystemClock()
    _warm_up(spark, lake)
    tables = [
        _Survey(spark, lake, folder, clock, keep_hours, target_bytes).table(unannounced.get(folder, set()))
        for folder in lake.folders()
    ]
    tables.sort(key=lambda one: (-one.read_seconds, one.name))
    return LakeReport(lake.url, keep_hours, tables)


def _warm_up(spark: SparkSession, lake: Lake) -> None:
    """Read once without looking at the time: the first read of a session loads and compiles code."""
    for folder in lake.folders():
        files = DeltaTable(lake.path(folder)).file_uris()
        if files:
            _read(spark, files[:1])
            return


def _read(spark: SparkSession, paths: Sequence[str]) -> None:
    spark.read.parquet(*paths).write.format("noop").mode("overwrite").save()


class _Survey:
    """The analysis of one table."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        folder: str,
        clock: SystemClock,
        keep_hours: int,
        target_bytes: int,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._path = lake.path(folder)
        self._clock = clock
        self._keep_hours = keep_hours
        self._target = target_bytes
        self._table = DeltaTable(self._path)
        self._files = [*_files(self._table)]

    def table(self, unannounced: set[str]) -> LakeTable:
        names = [field.name for field in self._table.schema().fields]
        kind: TableKind = "history" if {"before", "after"} <= {*names} else "rows"
        rows = int(self._frame.count()) if self._files else 0
        stored = sum(file.rows for file in self._files)
        unused = self._unused(unannounced)
        old = [size for name, size in unused.items() if name in self._removable]
        partitions = self._partitions()
        seconds = self._read_seconds()
        before = _cost(len(self._files), sum(file.size for file in self._files))
        after = _cost(sum(one.files_after for one in partitions), sum(one.bytes for one in partitions))
        keys, changes, hot = self._keys() if kind == "history" else (None, 0, [])
        checkpoint = self._checkpoint()
        commits = [int(path.stem) for path in (self._path / LOG).glob("[0-9]*.json")]
        return LakeTable(
            folder=self._folder,
            name=unquote(self._folder),
            kind=kind,
            version=int(self._table.version()),
            rows=rows,
            deleted_rows=max(0, stored - rows),
            partitions=partitions,
            log_files=len(commits),
            log_bytes=sum(path.stat().st_size for path in (self._path / LOG).iterdir() if path.is_file()),
            replayed=sum(number > checkpoint for number in commits),
            unused_files=len(unused),
            unused_bytes=sum(unused.values()),
            removable_files=len(old),
            removable_bytes=sum(old),
            unannounced=len(unannounced),
            keys=keys,
            changes=changes,
            hot_keys=hot,
            read_seconds=seconds,
            read_seconds_after=seconds * after / before if before else 0.0,
        )

    @property
    def _frame(self) -> Any:
        reader = self._spark.read.format("delta").option("versionAsOf", self._table.version())
        return reader.load(str(self._path))

    def _checkpoint(self) -> int:
        """Return the version of the last checkpoint; -1 if there is none."""
        try:
            return int(json.loads((self._path / LOG / "_last_checkpoint").read_text())["version"])
        except FileNotFoundError:
            return -1

    def _unused(self, unannounced: set[str]) -> dict[str, int]:
        """Return the sizes of the files that the present version doesn't have."""
        used = {file.path for file in self._files} | unannounced
        names = {str(path.relative_to(self._path)): path for path in self._path.rglob("*.parquet")}
        return {
            name: path.stat().st_size
            for name, path in names.items()
            if not name.startswith("_") and name not in used
        }

    @cached_property
    def _removable(self) -> set[str]:
        """The files that no version of the time that is kept has, and that are older than it."""
        names = self._table.vacuum(
            self._keep_hours, dry_run=True, enforce_retention_duration=False, full=True
        )
        return {unquote(name) for name in names}

    def _partitions(self) -> list[LakePartition]:
        by_date: defaultdict[str, list[_File]] = defaultdict(list)
        for file in self._files:
            by_date[file.date].append(file)
        return [self._partition(date, files) for date, files in sorted(by_date.items())]

    def _partition(self, date: str, files: Sequence[_File]) -> LakePartition:
        size = sum(file.size for file in files)
        small = [file for file in files if file.size < self._target / 2]
        whole = -(-sum(file.size for file in small) // self._target)
        return LakePartition(
            date=date,
            files=len(files),
            small_files=len(small),
            bytes=size,
            rows=sum(file.rows for file in files),
            files_after=len(files) - len(small) + min(len(small), whole) if files else 0,
        )

    def _read_seconds(self) -> float:
        """Measure a read of a part of the files, and extend it to all."""
        part: list[_File] = []
        size = 0
        for file in self._files:
            if part and (size + file.size > SAMPLE_BYTES or len(part) == SAMPLE_FILES):
                break
            part.append(file)
            size += file.size
        if not part:
            return 0.0
        began = self._clock.now()
        _read(self._spark, [str(self._path / file.path) for file in part])
        seconds = self._clock.now() - began
        return (
            seconds * _cost(len(self._files), sum(file.size for file in self._files)) / _cost(len(part), size)
        )

    def _keys(self) -> tuple[int | None, int, list[HotKey]]:
        """Return the number of keys, that of the changes' effects on them, and the keys with the most."""
        from pyspark.sql import functions as f

        table = self._definition()
        if table is None or not table.key:
            return None, 0, []
        found = events(SchemaFiles(table, b"", []), self._frame)
        keys = found.groupBy("key").agg(f.count("*").alias("changes")).persist()
        try:
            (total,) = keys.agg(f.count("*").alias("keys"), f.sum("changes").alias("changes")).collect()
            top = keys.orderBy(f.desc("changes"), f.to_json("key")).limit(HOT_KEYS)
            rows = top.select(f.to_json("key").alias("key"), "changes").collect()
            hot = [HotKey(row["key"], row.changes) for row in rows if row.changes > 1]
            return int(total["keys"]), int(total.changes or 0), hot
        finally:
            keys.unpersist()

    def _definition(self) -> Table | None:
        """Return the source's definition of the table, which is in the feed's files, and not in joined ones;
        None if no file has it."""
        names = {file.path.rpartition("/")[2]: file.path for file in self._files}
        by_feed = sorted([name for name in names if name[0].isdecimal()], reverse=True)  # by commit ts
        for name in by_feed[:SAMPLE_FILES]:
            metadata = pq.read_schema(self._path / names[name]).metadata or {}
            if TABLE in metadata:
                return msgspec.json.decode(metadata[TABLE], type=Table)
        return None


def _files(table: DeltaTable) -> list[_File]:
    added = pa.table(table.get_add_actions(flatten=True))
    names = added.column_names
    return [
        _File(
            path=unquote(row["path"]),
            date=str(row.get("partition.date") or ""),
            size=row["size_bytes"],
            rows=row.get("num_records") or 0,
        )
        for row in added.select([name for name in names if name in _USED]).to_pylist()
    ]


_USED: Final = (
    "path",
    "partition.date",
    "size_bytes",
    "num_records",
)


def _cost(files: int, size: int) -> int:
    return files * OPEN_BYTES + size
