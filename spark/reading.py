"""The way Spark reads each kind of source; only this file of the folder names the kinds."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from ..errors import ConfigError
from ..events import Table, parse_ts
from ..sources.kind import SourceKind
from ..sources.registry import source_kind
from ..sources.source import Rank

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from .backfill.directory import BackfillDirectory
    from .backfill.plan import BackfillPlan
    from .offsets.offset import Offsets
    from .read.options import ReadOptions
    from .snapshot.partition import MysqlPartition, SnapshotPartition, TikvPartition

KEEP_SECONDS: Final = 600
"""Time for which TiKV keeps old versions for a killed batch; a running batch renews it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkReading:
    """The way tasks read one kind of source."""

    by_ts: bool
    """True if a position is a ts: a snapshot may have any ts, and a task reads only its part of the tables.

    Otherwise a position is one of a log, which every task reads whole, and a snapshot is always as of now.
    """
    pause_seconds: float
    """Default pause between requests to a source without new changes."""
    rank: Callable[[str], Rank]
    """Sort key of positions. Raises CheckpointError."""
    open_offsets: Callable[[ReadOptions], Offsets]
    """Connect to the source. Raises Retryable and Fatal."""
    of_batch: Callable[[ReadOptions], ReadOptions]
    """Return the options of a single batch, with a unique name if the source needs one."""
    plans_as: str
    """Name of this kind in a backfill's plan."""
    plan_snapshot: Callable[[ReadOptions, Sequence[Filter]], Sequence[SnapshotPartition] | None]
    """Divide the snapshot of one table with the filters of a query; None if a feed's own snapshot reads it.
    Raises Retryable and Fatal."""
    read_snapshot: Callable[[ReadOptions, Any, Table], Generator[pa.RecordBatch]]
    """Yield the rows of one of these partitions with the columns of a table. Closing the iterator closes the
    connections. Raises Retryable and Fatal."""
    read_chunk: Callable[[Any, BackfillDirectory, BackfillPlan, int], None]
    """Read one chunk of a backfill, with the source's options. Raises Retryable and Fatal."""


def reading_of(url: str) -> SparkReading:
    """Return the same as `reading_of_kind`, for a source's URL."""
    return reading_of_kind(source_kind(url))


def reading_of_kind(kind: SourceKind) -> SparkReading:
    """Return the reading of a kind. Raises ConfigError if Spark can't read it."""
    if kind.name not in _READINGS:
        raise ConfigError(
            f"source.url: Spark can't read {kind.name}, only {', '.join(_READINGS)}: use the local engine"
        )
    return _READINGS[kind.name]


# --- a binlog


def _rank_mysql(position: str) -> Rank:
    from ..codec.mysql.position import Position

    return Position.parse(position).rank


def _mysql_offsets(options: ReadOptions) -> Offsets:
    from .offsets.mysql import MysqlOffsets

    return MysqlOffsets(options)


def _plan_mysql(options: ReadOptions, filters: Sequence[Filter]) -> list[MysqlPartition] | None:
    from .snapshot.plan import plan

    return plan(options, filters)


def _read_mysql_snapshot(options: ReadOptions, part: Any, table: Table) -> Generator[pa.RecordBatch]:
    from .snapshot.task import rows

    return rows(options, part, table)


def _read_mysql_chunk(options: Any, directory: BackfillDirectory, plan: BackfillPlan, number: int) -> None:
    from .backfill.mysql_chunk import read_mysql

    read_mysql(options, directory, plan, number)


# --- TiKV


def _tikv_offsets(options: ReadOptions) -> Offsets:
    from .offsets.tikv import TikvOffsets

    return TikvOffsets(options)


def _tikv_batch(options: ReadOptions) -> ReadOptions:
    """Return the options with a unique name, under which the cluster keeps old versions."""
    name = f"{options.name[:50]}-{uuid4().hex[:12]}"
    return replace(options, name=name, source={"gc_ttl_seconds": str(KEEP_SECONDS), **options.source})


def _plan_tikv(options: ReadOptions, filters: Sequence[Filter]) -> list[TikvPartition]:
    from .snapshot.tikv_plan import plan

    return plan(options, filters)


def _read_tikv_snapshot(options: ReadOptions, part: Any, table: Table) -> Generator[pa.RecordBatch]:
    from .snapshot.tikv_task import rows

    return rows(options, part, table)


def _read_tikv_chunk(options: Any, directory: BackfillDirectory, plan: BackfillPlan, number: int) -> None:
    from .backfill.tikv_chunk import read_tikv

    read_tikv(options, directory, plan, number)


_READINGS: Final = {
    "mysql": SparkReading(
        by_ts=False,
        pause_seconds=0.2,
        rank=_rank_mysql,
        open_offsets=_mysql_offsets,
        of_batch=lambda options: options,
        plans_as="mariadb",
        plan_snapshot=_plan_mysql,
        read_snapshot=_read_mysql_snapshot,
        read_chunk=_read_mysql_chunk,
    ),
    "tikv": SparkReading(
        by_ts=True,
        pause_seconds=1.0,  # a cluster can't tell if there are new changes
        rank=parse_ts,
        open_offsets=_tikv_offsets,
        of_batch=_tikv_batch,
        plans_as="tikv",
        plan_snapshot=_plan_tikv,
        read_snapshot=_read_tikv_snapshot,
        read_chunk=_read_tikv_chunk,
    ),
}
"""Readings by name of the source's kind."""
