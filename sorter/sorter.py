"""What every sorter does, how it is set up, and which there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..actors import ActorSystem, PooledRef, Target
from ..errors import ConfigError
from ..events import Ts
from ..store.plan import Outcome, Plan


@dataclass(frozen=True, slots=True)
class SorterStatistics:
    """A sorter at a moment."""

    tables: int
    resolved: Ts
    """The least over the tables; what lies at or below leaves."""
    sent: Ts
    """Everything at or below has left."""
    memory_bytes: int
    """Changes in memory, those on their way to disk included."""
    flushing_bytes: int
    """Changes on their way to disk."""
    spilled_bytes: int
    """Changes that went to disk since the start, by what they took in memory."""
    disk_bytes: int
    """Written to disk and not dropped yet."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Something that waits, on what, and since when by the clock's `now()`."""

    what: str
    on: str
    since: float


class EventSorter(Protocol):
    """Takes changes in any order, table by table, and sends them on in commit order.

    A table's changes and resolved timestamps are told to its Writer as `Changes`, whose lists are the
    sorter's from then on. What every table has resolved goes downstream as `Sorted`: whole
    transactions, ordered by commit ts and start ts; within one, a table's changes by op (DELETE
    first) and key. Nothing above the least resolved ts leaves. A change that came twice leaves once.
    Methods may be called from any thread.
    """

    def add_table(self, table_id: int, resolved: Ts = 0) -> PooledRef[Any]:
        """Begin a table whose changes all lie above `resolved`; tell its `Changes` to the ref.

        From now on nothing above its resolved ts leaves. Raises ValueError if the table is there.
        """

    def remove_table(self, table_id: int) -> None:
        """Drop a table with the changes that have not left. Raises KeyError if it isn't there."""

    def advance(self, resolved: Mapping[int, Ts]) -> None:
        """Resolve many tables at once, by id: as if each Writer was told so now, and much cheaper.

        Ids of tables that aren't there are passed over.
        """

    def acknowledge(self, ts: Ts) -> None:
        """Everything at or below `ts` will never be needed again: its space comes back."""

    def compact(self, plan: Plan, done: Callable[[list[Outcome]], object]) -> None:
        """Carry out a plan, between other work; `done` is called once, in whatever thread, with what came
        of it: with nothing where there is no store."""

    def statistics(self) -> SorterStatistics: ...

    def explain(self) -> list[Wait]:
        """What waits on what, and since when; empty if nothing does."""

    def close(self) -> None:
        """Stop the actors and give the directory back. Not from an actor's turn. Safe to repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SorterOptions:
    """Raises ConfigError, naming what is accepted."""

    engine: str = "db"
    """`db` goes to RocksDB beyond `memory_bytes`, `unified` to plain files; `memory` has no bound and no
    disk."""
    directory: Path | None = None
    """Where `db` and `unified` keep what doesn't fit in memory. It belongs to one process at a time."""
    memory_bytes: int = 64 << 20
    """Changes of all tables together that stay in memory; 0 sends everything through the disk."""
    max_disk_bytes: int | None = None
    """Going beyond stops the feed with a StoreError; None leaves it to the disk."""
    layout: str = "block"
    """`block` writes sorted runs of about 1,000 changes as one value, `event` each change by itself."""
    block_changes: int = 1000
    """A run on disk holds at most this many changes ..."""
    block_bytes: int = 256 << 10
    """... and about this much."""
    merge_bytes: int = 8 << 20
    """What may be open while tables are merged. A transaction larger than this leaves in stretches."""
    stores: int = 1
    """RocksDB instances, opened when first written to; a table's changes all go to one. The original has 8,
    for cores that Python's threads can't use: here a second one only halves what is written at once."""

    def __post_init__(self) -> None:
        _one_of("engine", self.engine, tuple(_ENGINES))
        _one_of("layout", self.layout, ("block", "event"))
        _at_least("memory_bytes", self.memory_bytes, 0)
        for name in ("block_changes", "block_bytes", "merge_bytes", "stores"):
            _at_least(name, getattr(self, name), 1)
        if self.max_disk_bytes is not None:
            _at_least("max_disk_bytes", self.max_disk_bytes, 1 << 20)
        if self.engine != "memory" and self.directory is None:
            raise ConfigError(
                f"sorter.directory: the {self.engine} engine needs one; any directory of its own will do"
            )


def open_sorter(
    options: SorterOptions, system: ActorSystem, downstream: Target, supervisor: PooledRef[Any] | None = None
) -> EventSorter:
    """Start the engine that the options name.

    `downstream` gets `Sorted` messages, one actor at a time; while it is full the sorter keeps what
    comes, in memory or on disk. `supervisor` gets `Failed` when an actor fails, which ends the
    sorter's use: with a StoreError if the disk is at fault. Raises StoreError if the directory can't
    be used or another process does.
    """
    return _ENGINES[options.engine](options, system, downstream, supervisor)


def _open_memory(
    options: SorterOptions, system: ActorSystem, downstream: Target, supervisor: PooledRef[Any] | None
) -> EventSorter:
    from .memory.sorter import MemorySorter

    return MemorySorter(options, system, downstream, supervisor)


def _open_db(
    options: SorterOptions, system: ActorSystem, downstream: Target, supervisor: PooledRef[Any] | None
) -> EventSorter:
    from .db.sorter import DbSorter

    return DbSorter(options, system, downstream, supervisor)


def _open_unified(
    options: SorterOptions, system: ActorSystem, downstream: Target, supervisor: PooledRef[Any] | None
) -> EventSorter:
    from .unified.sorter import UnifiedSorter

    return UnifiedSorter(options, system, downstream, supervisor)


_ENGINES: dict[str, Callable[..., EventSorter]] = {
    "db": _open_db,
    "memory": _open_memory,
    "unified": _open_unified,
}


def _one_of(name: str, value: str, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise ConfigError(f"sorter.{name} = {value!r}: one of {', '.join(accepted)}")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"sorter.{name} = {value}: at least {least}")
