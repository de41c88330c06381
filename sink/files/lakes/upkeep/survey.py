"""The analysis of a lake: files, logs, keys, and the time of a read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from .....actors import Clock
from .....errors import SinkError
from ...store import StoredFile
from ..copies.log import CopyFile
from ..parquet import open_parquet, read_rows
from .keys import Keys, count_keys
from .lake import Lake
from .plan import TARGET_BYTES
from .report import LakePartition, LakeReport, LakeTable, LeftTable, TableKind
from .table import TableUpkeep

OPEN_BYTES: Final = 4 << 20
"""Cost of opening a file, in bytes that are read meanwhile: Spark's spark.sql.files.openCostInBytes."""
SAMPLE_BYTES: Final = 64 << 20
SAMPLE_FILES: Final = 200
"""Part of a table that is read to measure a read."""
HOUR_MS: Final = 3_600_000
_OF_ROWS: Final = (".parquet", ".bin")
"""Endings of files with rows, or with deleted ones."""


def analyze_lake(
    lake: Lake, clock: Clock, keep_hours: int = 168, target_bytes: int = TARGET_BYTES
) -> LakeReport:
    """Return figures of each table. Nothing is changed; the feed may run.

    `keep_hours` is the time for which files of older versions are to be kept. A table that can't be read here
    is listed with the reason. Raises Retryable if the store or the catalog doesn't answer.
    """
    tables, left = [], []
    cutoff_ms = cutoff_of(clock, keep_hours)
    unannounced = lake.unannounced()
    for folder in lake.folders():
        survey = _Survey(lake, lake.table(folder), folder, clock, cutoff_ms, target_bytes)
        try:
            tables.append(survey.table(unannounced.get(folder, set())))
        except SinkError as error:
            left.append(LeftTable(folder, str(error)))
    tables.sort(key=lambda one: (-one.read_seconds, one.name))
    return LakeReport(lake.url, keep_hours, tables, left)


def cutoff_of(clock: Clock, keep_hours: int) -> int:
    """Return the time, in Unix milliseconds, from which everything is kept."""
    return int(clock.time() * 1000) - keep_hours * HOUR_MS


def unused(table: TableUpkeep, listed: Sequence[StoredFile], kept: set[str]) -> list[StoredFile]:
    """Return the files of a table's folder that aren't among the kept ones."""
    return [file for file in listed if file.name not in kept and not table.is_log(file.name)]


def is_small(file: CopyFile, target_bytes: int) -> bool:
    return file.size < target_bytes / 2


class _Survey:
    """The analysis of one table."""

    def __init__(
        self, lake: Lake, table: TableUpkeep, folder: str, clock: Clock, cutoff_ms: int, target_bytes: int
    ) -> None:
        self._store: Final = lake.store
        self._table: Final = table
        self._folder: Final = folder
        self._clock: Final = clock
        self._cutoff_ms: Final = cutoff_ms
        self._target: Final = target_bytes

    def table(self, unannounced: set[str]) -> LakeTable:
        snapshot = self._table.log.latest()
        files = [self._counted(file) for file in snapshot.files.values()]
        kind: TableKind = "history" if {"before", "after"} <= {*snapshot.column_names} else "rows"
        deleted = sum(file.deleted for file in files)
        listed = self._store.listed(self._folder)
        present = self._table.kept(snapshot, int(self._clock.time() * 1000)) | unannounced
        kept = self._table.kept(snapshot, self._cutoff_ms) | unannounced
        of_rows = [file for file in listed if file.name.endswith(_OF_ROWS)]
        spare = unused(self._table, of_rows, present)
        old = [one for one in unused(self._table, listed, kept) if one.modified_ms < self._cutoff_ms]
        partitions = self._partitions(files)
        seconds = self._read_seconds(files)
        before = _cost(len(files), sum(file.size for file in files))
        after = _cost(sum(one.files_after for one in partitions), sum(one.bytes for one in partitions))
        keys = count_keys(self._store, files) if kind == "history" else Keys()
        growth = self._table.growth(snapshot, self._cutoff_ms)
        return LakeTable(
            folder=self._folder,
            name=unquote(self._folder),
            kind=kind,
            rows=max(0, sum(file.rows or 0 for file in files) - deleted),
            deleted_rows=deleted,
            partitions=partitions,
            versions=growth.versions,
            old_versions=growth.old_versions,
            log_bytes=growth.log_bytes,
            replayed=growth.replayed,
            has_checkpoints=self._table.has_checkpoints,
            unused_files=len(spare),
            unused_bytes=sum(file.size for file in spare),
            removable_files=len(old),
            removable_bytes=sum(file.size for file in old),
            unannounced=len(unannounced),
            keys=keys.distinct,
            changes=keys.changes,
            hot_keys=list(keys.hot),
            read_seconds=seconds,
            read_seconds_after=seconds * after / before if before else 0.0,
        )

    def _counted(self, file: CopyFile) -> CopyFile:
        """Return a file with its number of rows, which a log need not say."""
        if file.rows is not None:
            return file
        with self._store.open(file.name) as content:
            return file._replace(rows=open_parquet(content).metadata.num_rows)

    def _partitions(self, files: Sequence[CopyFile]) -> list[LakePartition]:
        by_name: defaultdict[str, list[CopyFile]] = defaultdict(list)
        for file in files:
            by_name[file.partition].append(file)
        return [self._partition(name, own) for name, own in sorted(by_name.items())]

    def _partition(self, name: str, files: Sequence[CopyFile]) -> LakePartition:
        small = [file.size for file in files if is_small(file, self._target)]
        joined = min(len(small), -(-sum(small) // self._target))
        return LakePartition(
            name=name,
            files=len(files),
            small_files=len(small) if len(small) > 1 else 0,
            bytes=sum(file.size for file in files),
            rows=sum(file.rows or 0 for file in files),
            files_after=len(files) - len(small) + joined,
        )

    def _read_seconds(self, files: Sequence[CopyFile]) -> float:
        """Measure a read of a part of the files, and extend it to all."""
        part: list[CopyFile] = []
        size = 0
        for file in files:
            if part and (size + file.size > SAMPLE_BYTES or len(part) == SAMPLE_FILES):
                break
            part.append(file)
            size += file.size
        if not part:
            return 0.0
        self._read(part[0])  # the first read of a store connects
        began = self._clock.now()
        for file in part:
            self._read(file)
        seconds = self._clock.now() - began
        return seconds * _cost(len(files), sum(file.size for file in files)) / _cost(len(part), size)

    def _read(self, file: CopyFile) -> None:
        self._table.log.vector(file)
        with self._store.open(file.name) as content:
            read_rows(open_parquet(content))


def _cost(files: int, size: int) -> int:
    return files * OPEN_BYTES + size
