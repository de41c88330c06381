"""What the analysis of a store or of an archive found."""

from __future__ import annotations

from msgspec import Struct

from ...events import Ts
from ...store.plan import Plan


class TableFigures(Struct, frozen=True):
    """A table in all stores."""

    table: int
    """Its id in the source; of a binlog, which is one stream, 0."""
    name: str
    changes: int
    deletes: int
    bytes: int
    dead_bytes: int
    """At or below the acknowledged ts: nobody will read them again."""
    blocks: int
    overlap: int
    """The most blocks that have changes of one minute: so many are merged to read it."""
    read_amplification: float
    """Bytes of the blocks read for each byte of this table, reading minute by minute."""


class CellFigures(Struct, frozen=True):
    """A table in a minute of commit time."""

    table: int
    minute: int
    """Since 1970."""
    changes: int
    deletes: int
    bytes: int
    dead_bytes: int
    blocks: int


class WindowFigures(Struct, frozen=True):
    """A column family: what RocksDB can only drop as a whole."""

    store: str
    window: str
    bytes: int
    dead_bytes: int
    free_bytes: int
    """Of blocks that are dead as a whole: what compacting the window frees."""
    deletes: int
    newest: Ts
    files: int
    overlapping_files: int
    """Pairs of files with keys in common."""
    tombstones: int


class LevelFigures(Struct, frozen=True):
    store: str
    level: int
    files: int
    bytes: int
    overlapping_files: int


class StoreFigures(Struct, frozen=True):
    store: str
    bytes: int
    dead_bytes: int
    tables: int
    file_bytes: int
    write_amplification: float
    """Bytes of all files ever made for each byte that was given to the store; 0 where it isn't known."""


class HotKey(Struct, frozen=True):
    table: int
    name: str
    key: str
    changes: int


class StoreReport(Struct, frozen=True):
    """The sizes of keys and values, except where they are said to be those of files."""

    directory: str
    acknowledged: Ts
    stores: list[StoreFigures]
    levels: list[LevelFigures]
    windows: list[WindowFigures]
    tables: list[TableFigures]
    cells: list[CellFigures]
    hot_keys: list[HotKey]
    plan: Plan

    @property
    def skew(self) -> float:
        """The largest store's bytes over the average; 1 is even."""
        sizes = [store.bytes for store in self.stores]
        return max(sizes) * len(sizes) / sum(sizes) if sum(sizes) else 1.0


class DayFigures(Struct, frozen=True):
    """A table's partition of an archive."""

    table: str
    date: str
    files: int
    bytes: int
    """Of Parquet."""
    changes: int
    deletes: int
    live: int
    """Changes that hold the latest row of their key; the rest would go if the archive were folded."""


class ArchiveTable(Struct, frozen=True):
    table: str
    files: int
    bytes: int
    changes: int
    deletes: int
    live: int
    dead_bytes: int
    """The share of the changes that aren't live, in bytes of Parquet."""
    overlap: int
    """The most files with changes of the same ts range."""
    left: str = ""
    """Why it can't be folded."""

    @property
    def read_amplification(self) -> float:
        """Changes read for each row that is there."""
        return self.changes / self.live if self.live else float(self.changes)


class ArchiveReport(Struct, frozen=True):
    directory: str
    tables: list[ArchiveTable]
    """Those first whose folding frees most."""
    days: list[DayFigures]
    hot_keys: list[HotKey]
