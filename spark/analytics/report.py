"""The results of the analyses."""

from __future__ import annotations

from msgspec import Struct

from ...events import Ts
from ...store.plan import CompactionPlan


class TableFigures(Struct, frozen=True):
    """Figures of one table over all stores."""

    table: int
    """The table's id in TiDB, or a negative number."""
    name: str
    changes: int
    """Raw changes: a change of TiDB is a row, an event of a binlog has up to thousands of rows."""
    rows: int | None
    """Rows in these changes; None if unknown."""
    deletes: int
    """Rows that are deleted."""
    bytes: int
    dead_bytes: int
    """Bytes at or below the acknowledged ts, which are never read again."""
    blocks: int
    overlap: int
    """Maximum number of blocks with changes of the same minute, which are merged to read it."""
    read_amplification: float
    """Bytes of blocks read per byte of this table, when reading minute by minute."""
    bytes_after: int
    """Bytes after the plan."""
    read_amplification_after: float
    """`read_amplification` after the plan; 0 if nothing is left."""


class CellFigures(Struct, frozen=True):
    """Figures of one table in one minute of commit time."""

    table: int
    minute: int
    """Minutes since 1970."""
    changes: int
    rows: int | None
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
    plan: CompactionPlan

    @property
    def bytes(self) -> int:
        return sum(store.bytes for store in self.stores)

    @property
    def dead_bytes(self) -> int:
        return sum(store.dead_bytes for store in self.stores)

    @property
    def rows(self) -> int | None:
        """Rows of all changes; None if those of any table are unknown."""
        counts = [table.rows for table in self.tables]
        return None if None in counts else sum(filter(None, counts))

    @property
    def read_amplification(self) -> float:
        """Bytes of blocks read per byte, over all tables; 0 for an empty store."""
        read = sum(table.bytes * table.read_amplification for table in self.tables)
        return read / self.bytes if self.bytes else 0.0

    @property
    def read_amplification_after(self) -> float:
        """`read_amplification` after the plan; 0 if nothing is left."""
        left = sum(table.bytes_after for table in self.tables)
        read = sum(table.bytes_after * table.read_amplification_after for table in self.tables)
        return read / left if left else 0.0

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
    newest: Ts
    """The last commit ts in it; 0 if it has no changes."""
