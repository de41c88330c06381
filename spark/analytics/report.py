"""The results of the analyses."""

from __future__ import annotations

from msgspec import Struct

from ...events import Ts
from ...store.plan import Plan


class TableFigures(Struct, frozen=True):
    """Figures of one table over all stores."""

    table: int
    """The table's id in the source; 0 for a binlog, which is one stream."""
    name: str
    changes: int
    deletes: int
    bytes: int
    dead_bytes: int
    """Bytes at or below the acknowledged ts, which are never read again."""
    blocks: int
    overlap: int
    """Maximum number of blocks with changes of the same minute, which are merged to read it."""
    read_amplification: float
    """Bytes of blocks read per byte of this table, when reading minute by minute."""


class CellFigures(Struct, frozen=True):
    """Figures of one table in one minute of commit time."""

    table: int
    minute: int
    """Minutes since 1970."""
    changes: int
    deletes: int
    bytes: int
    dead_bytes: int
    blocks: int


class WindowFigures(Struct, frozen=True):
    """Figures of one generation of column families, which RocksDB drops as a whole."""

    store: str
    window: str
    bytes: int
    dead_bytes: int
    free_bytes: int
    """Bytes of fully dead blocks, which compacting the generation frees."""
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
    """Bytes of all files ever written per byte put into the store; 0 if unknown."""


class HotKey(Struct, frozen=True):
    table: int
    name: str
    key: str
    changes: int


class StoreReport(Struct, frozen=True):
    """Figures of a store. Sizes are those of keys and values unless they are said to be of files."""

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
        """Ratio of the largest store's bytes to the average; 1 is even."""
        sizes = [store.bytes for store in self.stores]
        return max(sizes) * len(sizes) / sum(sizes) if sum(sizes) else 1.0


class DayFigures(Struct, frozen=True):
    """Figures of one day of a table in an archive."""

    table: str
    date: str
    files: int
    bytes: int
    """Bytes of the Parquet files."""
    changes: int
    deletes: int
    live: int
    """Changes that hold the latest row of their key; folding would remove the others."""


class ArchiveTable(Struct, frozen=True):
    table: str
    files: int
    bytes: int
    changes: int
    deletes: int
    live: int
    dead_bytes: int
    """Bytes of the changes that aren't live, by their share of the files."""
    overlap: int
    """Maximum number of files with overlapping ts ranges."""
    left: str = ""
    """The reason why it can't be folded; empty if it can."""

    @property
    def read_amplification(self) -> float:
        """Changes read per live row."""
        return self.changes / self.live if self.live else float(self.changes)


class ArchiveReport(Struct, frozen=True):
    directory: str
    tables: list[ArchiveTable]
    """Tables by the bytes that folding frees, the largest first."""
    days: list[DayFigures]
    hot_keys: list[HotKey]
