"""The sorter protocol, its options, and the choice of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeAlias, assert_never

from msgspec import Meta

from ..actors import ActorSystem, Failed, PooledRef, Target
from ..errors import ConfigError
from ..events import Changes, Receipts, Sorted, Ts, Wait, WatermarkLog
from ..store.plan import CompactionPlan, StepOutcome
from .quota import MemoryQuota


@dataclass(frozen=True, slots=True)
class SorterStatistics:
    """A sorter at one moment."""

    tables: int
    resolved: Ts
    """The lowest resolved ts of all tables; everything at or below it leaves."""
    sent: Ts
    """Everything at or below this ts has left."""
    memory_bytes: int
    """Bytes of changes in memory, including those on their way to disk."""
    flushing_bytes: int
    """Bytes of changes on their way to disk."""
    spilled_bytes: int
    """Bytes of changes that went to disk since the start, as they were in memory."""
    disk_bytes: int
    """Bytes written to disk and not dropped yet."""


class EventSorter(Protocol):
    """Takes changes in any order, table by table, and sends them on in commit order.

    A table's changes and resolved timestamps are told to its Writer as `Changes`. What comes in order isn't
    sorted again: a source whose transactions are in commit order is a queue. What every table has resolved
    goes downstream as `Sorted`: whole transactions, ordered by commit ts and start ts; within one, changes by
    op (DELETE first) and key. Nothing above the least resolved ts leaves. A change that came twice leaves
    once. Methods may be called from any thread.
    """

    @property
    def receipts(self) -> Receipts:
        """Log of the changes that came, except those that only move the source's position."""

    @property
    def resolved_log(self) -> WatermarkLog:
        """Log of the lowest resolved ts of all tables."""

    def add_table(self, table_id: int, resolved: Ts = 0) -> PooledRef[Changes]:
        """Begin a table whose changes all lie above `resolved`; tell its `Changes` to the ref.

        From now on nothing above its resolved ts leaves. Raises ValueError if the table is there.
        """

    def remove_table(self, table_id: int) -> None:
        """Drop a table with the changes that have not left. Raises KeyError if it isn't there."""

    def advance(self, resolved: Mapping[int, Ts]) -> None:
        """Resolve many tables at once, by id: as telling each Writer would, and much cheaper.

        Unknown ids are ignored.
        """

    def acknowledge(self, ts: Ts) -> None:
        """Free the space of everything at or below `ts`, which will never be needed again."""

    def compact(self, plan: CompactionPlan, done: Callable[[list[StepOutcome]], object]) -> None:
        """Carry out a compaction plan between other work. `done` is called once, in any thread, with the
        outcomes; with none if the engine has no store."""

    def statistics(self) -> SorterStatistics: ...

    def explain(self) -> list[Wait]:
        """Return what waits, on what, and since when."""

    def close(self) -> None:
        """Stop the actors and release the directory. Not from an actor's turn. Safe to repeat."""


Engine: TypeAlias = Literal["db", "memory", "unified"]
Layout: TypeAlias = Literal["block", "event"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SorterOptions:
    """Options of the sorter."""

    engine: Engine = "db"
    """`db` spills to RocksDB beyond `memory_bytes`, `unified` to plain files; `memory` has no bound and never
    spills."""
    directory: Path | None = None
    """Directory that `db` and `unified` spill to. Used by one process at a time. A feed without one uses
    `scratch` in its data directory."""
    memory_bytes: Annotated[int, Meta(ge=0)] = 64 << 20
    """Bytes of all tables' changes that stay in memory; 0 sends everything through the disk."""
    max_disk_bytes: Annotated[int, Meta(ge=1 << 20)] | None = None
    """Maximum bytes on disk; exceeding it stops the feed with a StoreError. None: no bound but the disk's."""
    ahead_bytes: Annotated[int, Meta(ge=0)] = 1 << 30
    """Bytes ready to leave that are taken in while a sink is stuck, which it is 5 s after the last that left;
    at most half of `max_disk_bytes`. Otherwise, and beyond it, a source waits from 8 MiB on."""
    layout: Layout = "block"
    """`block` writes sorted runs of about 1,000 changes as one value, `event` each change by itself."""
    block_changes: Annotated[int, Meta(ge=1)] = 1000
    """Maximum number of changes in a run on disk."""
    block_bytes: Annotated[int, Meta(ge=1)] = 256 << 10
    """Maximum bytes of a run on disk, about."""
    merge_bytes: Annotated[int, Meta(ge=1)] = 8 << 20
    """Bytes of runs that may be open while tables are merged; a larger transaction leaves in parts."""
    stores: Annotated[int, Meta(ge=1)] = 1
    """RocksDB instances, opened when first written to; a table's changes all go to one. The original has 8,
    for cores that Python's threads can't use: here a second one only halves what is written at once."""


def open_sorter(
    options: SorterOptions,
    system: ActorSystem,
    downstream: Target[Sorted],
    supervisor: PooledRef[Failed] | None = None,
    memory: MemoryQuota | None = None,
) -> EventSorter:
    """Start the engine that the options name.

    `downstream` gets `Sorted` messages; while it is full the sorter keeps the changes, in memory or on
    disk. `supervisor` gets `Failed` when an actor fails, after which the sorter can't be used: with a
    StoreError if the disk is at fault. `memory` is a quota shared with other sorters, besides that of the
    options. Raises StoreError if the directory can't be used, or another process uses it; ConfigError if the
    engine needs a directory and the options name none.
    """
    if options.engine != "memory" and options.directory is None:
        raise ConfigError(
            f"sorter.directory: the {options.engine} engine needs one; any directory of its own will do"
        )
    return _engine(options.engine)(options, system, downstream, supervisor, memory)


def _engine(name: Engine) -> Callable[..., EventSorter]:
    """Return the class of an engine; the others aren't imported."""
    match name:
        case "db":
            from .db.sorter import DbSorter

            return DbSorter
        case "memory":
            from .memory import MemorySorter

            return MemorySorter
        case "unified":
            from .unified.sorter import UnifiedSorter

            return UnifiedSorter
        case _:
            assert_never(name)
