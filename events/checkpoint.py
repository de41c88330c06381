"""Checkpoints: what a target has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from .key_order import OrderedKey
from .ts import Ts


class TablePosition(Struct, frozen=True):
    """Position up to which one table's changes are applied."""

    ts: Ts
    position: str
    """The source's own position after the transaction of that ts."""


class Parking(Struct, frozen=True):
    """Why nothing of a table is applied; resumed, the table is loaded again."""

    state: Literal["paused", "failed", "removed"]
    """Parked by people, by an error, or as no pattern matches the table any more."""
    since: float
    """Time in Unix seconds."""
    at: TablePosition
    """Position as of which the target has the rows of the table."""
    cause: str = ""
    """The error; empty unless `failed`."""


class TableProgress(Struct, frozen=True):
    """Progress of one table's snapshot: complete, or up to and including the key `last`."""

    last: OrderedKey | None = None
    """None: the whole table; (): the table exists, without rows. Only keys that have a key_order are resumed
    inside a table."""
    stale: bool = False
    """True if the table is to be loaded again: the target has an old copy of it, or none."""
    pending: bool = False
    """True if the table is to be loaded for the first time: the target doesn't have it yet."""
    parked: Parking | None = None
    """Set if nothing of the table is applied until it is resumed; with `pending`, the target doesn't have
    it."""


WHOLE: Final = TableProgress()
CREATED: Final = TableProgress(())
"""Progress of a table that exists without rows yet: no key is at or below the empty tuple."""
STALE: Final = TableProgress((), stale=True)
PENDING: Final = TableProgress((), pending=True)

SnapshotProgress: TypeAlias = dict[str, TableProgress]
"""Tables by origin name whose snapshot has begun; one not in it has no rows in the target yet, unless REST is
in it."""

REST: Final = "*"
"""Name that stands for every table that isn't listed."""


def progress_of(loading: SnapshotProgress | None, name: str) -> TableProgress | None:
    """Return the progress of a table's snapshot; None if the table must be created for it."""
    if loading is None:
        return WHOLE
    progress = loading.get(name) or loading.get(REST)
    is_absent = progress is None or progress.stale or progress.pending or progress.parked is not None
    return None if is_absent else progress


def load_again(loading: SnapshotProgress | None, names: Iterable[str]) -> SnapshotProgress:
    """Return the snapshot progress with these tables to be loaded: again, unless the target doesn't have
    them yet. Tables that the first snapshot hasn't come to stay as they are: it loads them."""
    before = {REST: WHOLE} if loading is None else loading
    return before | {
        name: PENDING if name in before and before[name].pending else STALE
        for name in names
        if name in before or REST in before
    }


def park(loading: SnapshotProgress | None, name: str, parking: Parking) -> SnapshotProgress:
    """Return the snapshot progress with a parked table."""
    before = {REST: WHOLE} if loading is None else loading
    have = before.get(name) or before.get(REST)
    return {**before, name: TableProgress((), pending=have is None or have.pending, parked=parking)}


def parked_tables(loading: SnapshotProgress | None) -> dict[str, Parking]:
    """Return the parked tables by origin name."""
    return {name: have.parked for name, have in (loading or {}).items() if have.parked is not None}


class Chunk(Struct, frozen=True):
    """Marks a transaction as snapshot rows: `table` is loaded up to `loaded` once it is applied.

    With `table` empty the snapshot is complete. In a transaction in parts, each part names the table, and the
    last one has its progress. With PENDING, the table is to be loaded; with REST as `table`, every table that
    isn't listed by then has its rows from the log.
    """

    table: str
    loaded: TableProgress = TableProgress()
    after: OrderedKey | None = None
    """The rows have keys above this one, in any order. None: they are in key order."""


class SparkQuery(Struct, frozen=True, tag="spark query"):
    """Spark writes the target, in a query that began at the checkpoint."""

    partitions: int
    """Number of partitions of the query; it can't change, as progress is stored by partition."""


class SparkBatch(Struct, frozen=True, tag="spark batch"):
    """A Spark task wrote this checkpoint, which is for one partition."""

    query: str
    batch: int


Owner: TypeAlias = SparkQuery | SparkBatch


FORMER: Final = "former tables"
"""Key in `Checkpoint.stages` of the patterns by which tables were chosen until they changed. While it is
there, a table that `loading` doesn't list and that the former patterns don't match isn't in the target."""


def noted_key(source: str) -> str:
    """Return the key in `Checkpoint.stages` of the last schema change that a source had noted
    (`Ddl.noted`) and the target has passed: its ts."""
    return f"noted by {source}"


class Checkpoint(Struct, frozen=True):
    """State of a target: it contains every transaction up to `ts`, for the tables that `loading` lists."""

    ts: Ts
    position: str
    """The source's own position after that transaction, for instance "mysql-bin.000003:4711"."""
    loading: SnapshotProgress | None = None
    """None once the snapshot is complete, or if there is none."""
    source: str = ""
    """Identity of the source, so that a checkpoint isn't used with another server."""
    owner: Owner | None = None
    """Engine that writes the target; None: the local one."""
    tables: dict[str, TablePosition] = {}
    """Tables that aren't at `ts`, by origin name: they lag behind it or are ahead of it."""
    stages: dict[str, str] = {}
    """State of stages as of `ts`, by a key of theirs: for instance the shards of a merged table."""

    @property
    def is_loaded(self) -> bool:
        """True if the target has all rows of every table that isn't parked, and no load is to end."""
        loading = self.loading
        if loading is None:
            return True
        if FORMER in self.stages or len(loading) < 2 or loading.get(REST) != WHOLE:
            return False
        return all(have.parked is not None for name, have in loading.items() if name != REST)

    @property
    def is_uniform(self) -> bool:
        """True if all tables that aren't parked are complete, at `ts`, and the local engine writes them."""
        return self.is_loaded and not self.tables and self.owner is None

    @property
    def to_load(self) -> SnapshotProgress | None:
        """The progress that concerns the source, which loads no parked table; None if nothing is to be
        loaded."""
        if self.loading is None or self.is_loaded:
            return None
        return {name: have if have.parked is None else WHOLE for name, have in self.loading.items()}

    @property
    def resume(self) -> TablePosition:
        """The lowest position from which changes are still needed: its own, or that of a lagging table."""
        own = TablePosition(self.ts, self.position)
        return min([own, *self.tables.values()], key=lambda place: place.ts) if self.tables else own

    def covers(self, table: str, ts: Ts) -> bool:
        """Return True if the target has the changes of `table` at `ts`."""
        own = self.tables.get(table)
        return ts <= (self.ts if own is None else own.ts)

    def includes(self, other: Checkpoint) -> bool:
        """Return True if the target has everything that it has at `other`, a checkpoint of the same
        source."""
        if other.loading is not None and any(
            have.stale and (self.loading is None or self.loading.get(name) != have)
            for name, have in other.loading.items()
        ):
            return False
        if self.ts == other.ts and (self.loading != other.loading or self.stages != other.stages):
            return False
        if not (self.tables or other.tables):
            return self.ts >= other.ts
        ends = [(name, own.ts) for name, own in other.tables.items()]
        ends += [(name, other.ts) for name in self.tables if name not in other.tables]
        return self.ts >= other.ts and all(self.covers(name, ts) for name, ts in ends)
