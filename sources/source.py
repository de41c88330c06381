"""The base class of sources of any kind, which pipelines use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ..chain.selection.tables import named
from ..events import Checkpoint, Item, Sorted, TablePosition, Ts, Wait

if TYPE_CHECKING:
    from ..actors import ActorSystem, Failed, PooledRef, Runtime
    from ..puller.lane import LoadBarrier
    from ..puller.puller import PullerStatistics, SourceReport
    from ..sharding.key_space import KeySpace
    from ..sink import Deliver
    from ..sorter import EventSorter


class Rank(Protocol):
    """Sort key of a position, comparable with those of the same source."""

    def __lt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...


class SourceInfo(Struct, frozen=True):
    """Result of the first look at a source."""

    source: str
    """Identity of the source, for `Checkpoint.source`."""
    end: str
    """Current end position."""
    tables: list[tuple[str, str]]
    """Schema and name of the tables that this user may see."""
    names: tuple[str, ...] = ()
    """Names of several sources, each at the index of its lane; empty for a feed's only one."""
    continues: Callable[[Checkpoint], bool] = lambda _: False
    """True if a checkpoint of another identity can be resumed here, as the source has the same history."""


class StartContext(Struct, frozen=True):
    """Arguments for starting a source."""

    compute: ActorSystem
    blocking: ActorSystem
    """System for actors that block in drivers; it has a worker for one actor of the source."""
    sorter: EventSorter
    decoder: PooledRef[Sorted | Deliver]
    """Accepts `Sorted` from the sorter, and `Deliver` with items that need no sorting."""
    coordinator: PooledRef[SourceReport | Failed]
    """Receives failures, Connected, Retrying and SnapshotReport."""
    start: Checkpoint | None
    """Checkpoint to resume from; None for a new feed, with a snapshot if requested."""
    sink_checkpoints: Sequence[Checkpoint]
    """Checkpoints of all sinks."""
    decodes: bool = False
    """True if every sink reads rows as tuples: then `mount` may decode them at once."""
    state_dir: Path | None = None
    """Directory of the feed's state; None for a feed that keeps none."""
    unneeded: frozenset[str] = frozenset()
    """Full names of tables whose changes no sink needs before they are loaded again."""
    load_barrier: LoadBarrier | None = None
    """Where one of several sources waits for the snapshots of the others; None for a feed's only source."""
    runtime: Runtime | None = None
    """Threads of the feed; None: those of the machine."""
    pace: Callable[[], float] = lambda: 1.0
    """Returns how many times as long as alone an idle source rests: other feeds of the process work too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTraits:
    """Abilities of a source; the same as long as it lives."""

    reloads: bool = False
    """True if `start` can load single tables again: those that are stale in the checkpoint's `loading`."""
    has_key_spaces: bool = False
    """True if it can tell the keys of its tables: then tables that are merged are checked."""


class Source(ABC):
    """One source, from the first look to the end.

    Methods are called from the feed's thread unless stated otherwise. A source derives from this class;
    members with a body are those of a plain source.
    """

    address: str

    @property
    def traits(self) -> SourceTraits:
        return SourceTraits()

    @property
    def begins_at(self) -> str:
        """Start position without a checkpoint; empty for the source's end."""
        return ""

    @abstractmethod
    def look(self) -> SourceInfo:
        """Connect. Raises Retryable and Fatal."""

    @abstractmethod
    def rank(self, position: str) -> Rank:
        """Return the sort key of a position. Raises CheckpointError for an invalid position."""

    def described(self, position: str) -> str:
        """Return a position as people read it. Raises CheckpointError for an invalid position."""
        return position

    @abstractmethod
    def behind(self, sink: str, position: str, end: str) -> str:
        """Return the error text for a sink whose position is after the source's end. Raises Retryable if the
        source will have it in a moment."""

    @abstractmethod
    def start(self, context: StartContext) -> None:
        """Start reading, by actors; called once, after `look`. Raises Retryable and Fatal."""

    @abstractmethod
    def mount(self, released: Sorted) -> list[Item]:
        """Return the items of the sorter's output. Called in the DecodeActor's turns."""

    @abstractmethod
    def acknowledged(self, ts: Ts) -> None:
        """Note that everything up to `ts` is durable in every sink. Called in the Coordinator's turns."""

    @abstractmethod
    def check_seek(self, position: str) -> None:
        """Raise SourceError unless a new start can read again after `position`. Called in the Coordinator's
        turns."""

    @abstractmethod
    def statistics(self) -> PullerStatistics | None:
        """Return the puller's last statistics; None if it is too busy to answer."""

    def hours_left(self, place: TablePosition, age_seconds: float) -> float | None:  # noqa: ARG002
        """Return the hours until the source discards its changes after a place, which is `age_seconds` old,
        if it goes on at its present rate; None if that isn't known, or if it never does. Any thread."""
        return None

    @property
    def rest_seconds(self) -> float:
        """Longest time for which its actor waits for changes in one turn, though nothing is wrong."""
        return 0.0

    @abstractmethod
    def waits(self) -> list[Wait]:
        """Return the source's waits and slow parts; may be called at any time after `start`."""

    @abstractmethod
    def table_name(self, table_id: int) -> str:
        """Return the name of a sorter's keyspace for a Wait; empty if it has none."""

    @contextmanager
    def key_spaces(self) -> Iterator[list[KeySpace]]:
        """Yield the keys of all tables that are followed, if it has key spaces."""
        yield []

    def copied(self, state_dir: Path, checkpoint: Checkpoint) -> Collection[str]:  # noqa: ARG002
        """Return the full names of the tables of which a target at `checkpoint` has copies.

        Called after `look`, for a kind that `renews`. Raises StoreError if the state that the source keeps in
        `state_dir` is damaged.
        """
        return ()

    @abstractmethod
    def stop(self) -> None:
        """Stop reading. Returns at once."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources, after the actors' systems were stopped. Safe to repeat."""


def no_table_matches(unmatched: Sequence[str], tables: Sequence[tuple[str, str]] = ()) -> str:
    """Return the error about patterns that match none of these (schema, table) names."""
    names = named(unmatched, tables)
    return f"source.tables: no table matches {names}: correct the pattern (or, MariaDB: GRANT SELECT)"
