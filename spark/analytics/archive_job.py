"""The Spark job over a Parquet archive: live changes, and what folding would free."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from msgspec import Struct

from ...errors import SinkError
from ...sink.files.layout import DAY, DDL_FOLDER, HIDDEN, date_of
from ..archive.archive import layouts_of, reason_to_leave
from ..archive.files import File, files, folders
from ..archive.fold import ORDER, SchemaFiles, events
from .report import ArchiveReport, ArchiveTable, DayFigures, HotKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOT_KEYS: Final = 20


class _Counts(Struct):
    """Counts of one day."""

    changes: int = 0
    deletes: int = 0
    live: int = 0


def analyze_archive(spark: SparkSession, directory: str | Path) -> ArchiveReport:
    """Return figures by table and day. Raises SinkError for a directory without an archive or a bad file."""
    directory = Path(directory)
    if not (directory / HIDDEN).is_dir():
        raise SinkError(f"{directory} is no archive: it has no {HIDDEN}")
    tables: list[ArchiveTable] = []
    days: list[DayFigures] = []
    hot: list[HotKey] = []
    newest = 0
    for folder in folders(directory):
        table_files = files(directory, folder)
        if folder != DDL_FOLDER and table_files:
            its_days, its_keys, left = _table(spark, unquote(folder.removeprefix("table=")), table_files)
            tables.append(_total(its_days, table_files, left))
            days += its_days
            hot += its_keys
            newest = max(newest, *[file.last for file in table_files])
    tables.sort(key=lambda one: (-one.dead_bytes, one.table))
    hot.sort(key=lambda one: (-one.changes, one.name, one.key))
    return ArchiveReport(str(directory), tables, days, hot[:HOT_KEYS], newest)


def _table(
    spark: SparkSession, name: str, table_files: Sequence[File]
) -> tuple[list[DayFigures], list[HotKey], str]:
    layouts = layouts_of(table_files)
    left = reason_to_leave(table_files, layouts)
    frames = [spark.read.parquet(*layout.paths) for layout in layouts]
    counts: dict[str, _Counts] = {}
    _count(frames, counts)
    if any(not layout.table.key for layout in layouts):
        for day in counts.values():
            day.live = day.changes
        return _days(name, table_files, counts), [], left
    keys = _keys(layouts, frames).persist()
    try:
        _count_live(keys, counts)
        return _days(name, table_files, counts), _hot(name, keys), left
    finally:
        keys.unpersist()


def _count(frames: Sequence[DataFrame], counts: dict[str, _Counts]) -> None:
    from pyspark.sql import functions as f

    together = reduce(
        lambda one, other: one.union(other), [frame.select("commit_ts", "op") for frame in frames]
    )
    day = f.expr(f"commit_ts div {DAY}L").alias("day")
    for row in together.groupBy(day, "op").count().collect():
        its = counts.setdefault(_date(row.day), _Counts())
        its.changes += row["count"]
        its.deletes += row["count"] if row.op == "delete" else 0


def _keys(layouts: Sequence[SchemaFiles], frames: Sequence[DataFrame]) -> DataFrame:
    """Return a DataFrame: key, changes, last (commit_ts, start_ts, sequence, is_there)."""
    from pyspark.sql import functions as f

    together = reduce(lambda one, other: one.union(other), map(events, layouts, frames))
    last = f.max(f.struct(*ORDER, "is_there")).alias("last")
    return together.groupBy("key").agg(f.count("*").alias("changes"), last)


def _count_live(keys: DataFrame, counts: dict[str, _Counts]) -> None:
    from pyspark.sql import functions as f

    day = f.expr(f"last.commit_ts div {DAY}L").alias("day")
    for row in keys.filter("last.is_there").groupBy(day).count().collect():
        counts[_date(row.day)].live = row["count"]


def _hot(name: str, keys: DataFrame) -> list[HotKey]:
    from pyspark.sql import functions as f

    top = keys.filter("changes > 1").select("changes", f.to_json("key").alias("text"))
    rows = top.orderBy(f.desc("changes"), "text").limit(HOT_KEYS).collect()
    return [HotKey(0, name, row.text, row.changes) for row in rows]


def _date(day: int) -> str:
    return date_of(day * DAY)


def _days(name: str, table_files: Sequence[File], counts: dict[str, _Counts]) -> list[DayFigures]:
    sizes: dict[str, list[int]] = {}
    for file in table_files:
        sizes.setdefault(file.date.removeprefix("date="), []).append(file.path.stat().st_size)
    return [
        DayFigures(name, date, len(sizes[date]), sum(sizes[date]), its.changes, its.deletes, its.live)
        for date, its in sorted(counts.items())
    ]


def _total(days: Sequence[DayFigures], table_files: Sequence[File], left: str) -> ArchiveTable:
    dead = sum(day.bytes * (day.changes - day.live) // day.changes for day in days if day.changes)
    sums: dict[str, Any] = {
        name: sum(getattr(day, name) for day in days)
        for name in ("files", "bytes", "changes", "deletes", "live")
    }
    return ArchiveTable(days[0].table, **sums, dead_bytes=dead, overlap=overlap(table_files), left=left)


def overlap(table_files: Sequence[File]) -> int:
    """Return the maximum number of files with changes of the same commit ts."""
    most = here = 0
    for _, step in sorted(
        [(file.first, -1) for file in table_files] + [(file.last, 1) for file in table_files]
    ):
        here -= step
        most = max(most, here)
    return most
