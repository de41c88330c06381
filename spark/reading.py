"""How Spark reads each kind of source: the one place in this folder that knows their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from ..errors import ConfigError
from ..events import parse_ts
from ..sources.kind import SourceKind
from ..sources.registry import source_kind

if TYPE_CHECKING:
    from .backfill.directory import Directory
    from .backfill.plan import Plan
    from .offsets.offset import Offsets
    from .read.options import ReadOptions

KEEP_SECONDS: Final = 600
"""How long TiKV keeps old versions for a batch that has died; a running batch renews this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkReading:
    """How tasks read one kind of source."""

    by_ts: bool
    """True if a position is a ts: a snapshot can be of any ts, and a task reads only its own part of the
    tables. Otherwise a position is of a log, which every task reads whole, and a snapshot is of now."""
    pause_seconds: float
    """Default pause between questions to a source without news."""
    rank: Callable[[str], Any]
    """A sort key for positions. Raises CheckpointError."""
    open_offsets: Callable[[ReadOptions], Offsets]
    """Connected. Raises Retryable and Fatal."""
    of_batch: Callable[[ReadOptions], ReadOptions]
    """The options of one batch, which is alone with them."""
    plans_as: str
    """What a backfill's plan calls this kind."""
    read_chunk: Callable[[Any, Directory, Plan, int], None]
    """Read one chunk of a backfill, with the source's options. Raises Retryable and Fatal."""


def reading_of(url: str) -> SparkReading:
    """As `reading_of_kind`, for a source's URL."""
    return reading_of_kind(source_kind(url))


def reading_of_kind(kind: SourceKind) -> SparkReading:
    """Raises ConfigError if Spark can't read this kind of source."""
    if kind.name not in _READINGS:
        raise ConfigError(
            f"source.url: Spark can't read {kind.name}, only {', '.join(_READINGS)}: use the local engine"
        )
    return _READINGS[kind.name]


# --- a binlog


def _rank_mysql(position: str) -> Any:
    from ..puller.mysql.position import Position

    return Position.parse(position).rank


def _mysql_offsets(options: ReadOptions) -> Offsets:
    from .offsets.mysql import MysqlOffsets

    return MysqlOffsets(options)


def _read_mysql_chunk(options: Any, directory: Directory, plan: Plan, number: int) -> None:
    from .backfill.mysql_chunk import read_mysql

    read_mysql(options, directory, plan, number)


# --- TiKV


def _tikv_offsets(options: ReadOptions) -> Offsets:
    from .offsets.tikv import TikvOffsets

    return TikvOffsets(options)


def _tikv_batch(options: ReadOptions) -> ReadOptions:
    """With a name of its own, under which the cluster keeps old versions."""
    name = f"{options.name[:50]}-{uuid4().hex[:12]}"
    return replace(options, name=name, source={"gc_ttl_seconds": str(KEEP_SECONDS), **options.source})


def _read_tikv_chunk(options: Any, directory: Directory, plan: Plan, number: int) -> None:
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
        read_chunk=_read_mysql_chunk,
    ),
    "tikv": SparkReading(
        by_ts=True,
        pause_seconds=1.0,  # a cluster can't say whether there is news
        rank=parse_ts,
        open_offsets=_tikv_offsets,
        of_batch=_tikv_batch,
        plans_as="tikv",
        read_chunk=_read_tikv_chunk,
    ),
}
"""By the name of the source's kind."""
