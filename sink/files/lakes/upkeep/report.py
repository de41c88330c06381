"""The result of a lake's analysis."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

TableKind: TypeAlias = Literal["history", "rows"]
"""history: every change, in `before` and `after`; rows: the present rows."""


class HotKey(Struct, frozen=True):
    key: str
    """The key's columns as JSON."""
    changes: int


class LakePartition(Struct, frozen=True):
    """One partition of a table; of a table without partitions, all of it."""

    name: str
    """Day of a history; empty without partitions."""
    files: int
    small_files: int
    """Files of less than half the target size that have another one beside them to be joined with."""
    bytes: int
    rows: int
    files_after: int
    """Files after they are joined."""


class LakeTable(Struct, frozen=True, kw_only=True):
    """Figures of one table. Bytes are those of files with rows, unless they are said to be of the log."""

    folder: str
    name: str
    kind: TableKind
    rows: int
    deleted_rows: int
    """Rows in the files that deletion vectors or position deletes hide."""
    partitions: list[LakePartition]
    """By name."""
    versions: int
    """Versions that can be read: commits in Delta's log, or snapshots."""
    old_versions: int
    """Of these, snapshots of Iceberg that are older than the time that is kept, and that nothing names."""
    log_bytes: int
    """Bytes of the log, or of the metadata."""
    replayed: int
    """Files of the log that a reader opens first: commits since the last checkpoint, or manifests."""
    has_checkpoints: bool
    """True if a checkpoint shortens the log, as in Delta."""
    unused_files: int
    """Files that the present version doesn't have: of older versions, and of writers that died."""
    unused_bytes: int
    removable_files: int
    """Of these, those that are older than the time that is kept."""
    removable_bytes: int
    unannounced: int
    """Files that a feed has yet to add; while there are any, nothing is removed from the table."""
    keys: int | None = None
    """Keys that the changes are of; None if they aren't known, or are too many to be counted, or for rows."""
    changes: int = 0
    """Effects of the changes on keys."""
    hot_keys: list[HotKey] = []
    read_seconds: float
    """Time to read everything once, measured on a part of the files and extended to all."""
    read_seconds_after: float
    """The same after the plan, estimated: an opened file costs as much as 4 MiB, as Spark assumes."""

    @property
    def files(self) -> int:
        return sum(one.files for one in self.partitions)

    @property
    def small_files(self) -> int:
        return sum(one.small_files for one in self.partitions)

    @property
    def files_after(self) -> int:
        return sum(one.files_after for one in self.partitions)

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.partitions)

    @property
    def skew(self) -> float:
        """Ratio of the largest partition's bytes to the average; 1 is even."""
        sizes = [one.bytes for one in self.partitions]
        return max(sizes) * len(sizes) / sum(sizes) if sum(sizes) else 1.0

    @property
    def deleted_share(self) -> float:
        """Share of the rows in files that are deleted, from 0 to 1."""
        return self.deleted_rows / (self.rows + self.deleted_rows) if self.deleted_rows else 0.0


class LeftTable(Struct, frozen=True):
    """A table that can't be analyzed."""

    folder: str
    why: str


class LakeReport(Struct, frozen=True):
    url: str
    keep_hours: int
    """Hours for which files of older versions are kept."""
    tables: list[LakeTable]
    """The slowest to read first."""
    left: list[LeftTable] = []
    """Tables that aren't in the report."""

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.tables)

    @property
    def files(self) -> int:
        return sum(one.files for one in self.tables)

    @property
    def read_seconds(self) -> float:
        return sum(one.read_seconds for one in self.tables)

    @property
    def read_seconds_after(self) -> float:
        return sum(one.read_seconds_after for one in self.tables)
