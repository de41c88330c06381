"""What a pipeline needs of a source, whatever its kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from ..actors import ActorSystem, PooledRef
from ..events import Checkpoint, Item, Sorted, Ts, Wait
from ..puller.lane import LoadBarrier
from ..puller.puller import PullerStatistics
from ..sorter import EventSorter


class SourceInfo(Struct, frozen=True):
    """A first look at a source."""

    source: str
    """Its identity: what belongs into `Checkpoint.source`."""
    end: str
    """The position at which it ends now."""
    tables: list[tuple[str, str]]
    """Schema and name of those that this user may see."""


class StartContext(Struct, frozen=True):
    """What a source is given to start with."""

    compute: ActorSystem
    blocking: ActorSystem
    """For actors that wait in drivers; it has a worker for one of the source's."""
    sorter: EventSorter
    decoder: PooledRef[Any]
    """Takes `Sorted` of the sorter, and `Deliver` of a source that needs no sorting for it."""
    coordinator: PooledRef[Any]
    """Hears of failures, and gets Connected, Retrying and SnapshotReport."""
    start: Checkpoint | None
    """Where to resume; None: anew, with a snapshot if that is wanted."""
    sink_checkpoints: Sequence[Checkpoint]
    """The checkpoints of all sinks."""
    decodes: bool = False
    """True if every sink reads rows as tuples: a source may decode them as it mounts them."""
    load_barrier: LoadBarrier | None = None
    """Where one of several sources waits for the snapshots of the others."""


class Source(Protocol):
    """One source, from the first look to the end. Its methods are called from the feed's thread."""

    address: str

    def look(self) -> SourceInfo:
        """Connect. Raises Retryable and Fatal."""

    def rank(self, position: str) -> Any:
        """A sort key for positions. Raises CheckpointError for what isn't one."""

    def behind(self, sink: str, position: str, end: str) -> str:
        """The sentence for a sink whose position lies behind the source's end."""

    def start(self, context: StartContext) -> None:
        """Begin to read, on actors. Raises Retryable and Fatal. Once, after `look`."""

    def mount(self, released: Sorted) -> list[Item]:
        """What the sorter released, as items. Called in the DecodeActor's turns."""

    def acknowledged(self, ts: Ts) -> None:
        """Every sink durably has everything up to there. Called in the Coordinator's turns."""

    def check_seek(self, position: str) -> None:
        """Raise SourceError unless it can be read again after `position`, by a new start. Called in the
        Coordinator's turns."""

    def statistics(self) -> PullerStatistics | None:
        """None if it is too busy to answer."""

    def waits(self) -> list[Wait]:
        """What it waits on, and what is slow in it; may be called at any time after `start`."""

    def table_name(self, table_id: int) -> str:
        """Return what a Wait calls a keyspace of the sorter; empty where it has no name."""

    def stop(self) -> None:
        """Read no further. Returns at once."""

    def close(self) -> None:
        """Give back all that it holds, after the actors' systems were stopped. Safe to repeat."""


def no_table_matches(patterns: Sequence[str]) -> str:
    names = ", ".join(map(repr, patterns))
    return f"source.tables: no table matches {names}: mend the pattern (or, MariaDB: GRANT SELECT)"
