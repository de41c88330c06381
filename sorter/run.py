"""Runs: changes of one or several tables, in memory or on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..events import KvChange, Ts
from .table import Table


class BlockLocation(msgspec.Struct, frozen=True):
    """Where a run is on disk: the keys from `lower` to `upper`, both included, of a generation; in a file
    both are the offset."""

    window: Any
    """A Generation of a store, or a file."""
    lower: bytes
    upper: bytes
    keys: int
    """Number of keys in that range that belong to the run."""
    bytes: int


Owners = list[int] | None
"""For each change, the index of its table in the run's `tables`; None if there is only one table."""


class Run:
    """A run of changes. Owned by the Tier while that holds it; see there which thread may use what."""

    __slots__ = (
        "ascends",
        "bytes",
        "changes",
        "count",
        "first",
        "flushing",
        "is_sorted",
        "newest",
        "owners",
        "place",
        "replacements",
        "tables",
    )  # fmt: skip

    def __init__(
        self,
        tables: Sequence[Table],
        owners: Owners,
        changes: list[KvChange],
        size: int,
        first: KvChange,
        newest: Ts,
        is_sorted: bool,
        ascends: bool = False,
    ) -> None:
        self.tables = tables
        """Tables of one group; may include tables without changes here, since parts of a cut run share it."""
        self.owners = owners
        """None whenever `changes` is."""
        self.first = first
        """A change that sorts at or before every change of the run; without a value, to stay small."""
        self.newest = newest
        """The highest commit ts."""
        self.is_sorted = is_sorted
        self.ascends = is_sorted or ascends
        """True if the commit ts ascend, even if changes of the same one aren't sorted."""
        self.count = len(changes)
        self.bytes = size
        """Bytes that the changes take in memory."""
        self.changes: list[KvChange] | None = changes
        """None once they are taken, or kept elsewhere: in `place`, or in `replacements`."""
        self.place: BlockLocation | None = None
        self.replacements: list[Run] | None = None
        """The runs that this one was merged into, shared with the others that were."""
        self.flushing = False
        """True while it is written to disk and still in memory."""

    def __str__(self) -> str:
        return f"{self.whose}: {self.count} changes of commit ts {self.first.commit_ts} to {self.newest}"

    @property
    def whose(self) -> str:
        """Describe the tables that have changes in it, for people."""
        numbers = sorted({table.id for table in self.tables})
        if len(numbers) == 1:
            return f"table {numbers[0]}"
        return f"tables {', '.join(map(str, numbers[:10]))}{', ...' if len(numbers) > 10 else ''}"


def floor(ts: Ts) -> KvChange:
    """Return a change that sorts before all of this commit ts, and after all of earlier ones."""
    return KvChange(ts, 0, 0, b"", b"")


def join_runs(runs: list[Run]) -> tuple[Sequence[Table], Owners]:
    """Return the tables and owners of several runs' changes, one run after the other."""
    first = runs[0].tables
    if all(run.owners is None and run.tables[0] is first[0] for run in runs):
        return first, None
    tables: list[Table] = []
    owners: list[int] = []
    for run in runs:
        base = len(tables)
        tables += run.tables
        owners += [base] * run.count if run.owners is None else [base + owner for owner in run.owners]
    return tables, owners


def without_removed(
    tables: Sequence[Table], owners: Owners, changes: list[KvChange]
) -> tuple[list[KvChange], Owners]:
    """Return the changes of the tables that were not removed."""
    removed = {n for n, table in enumerate(tables) if table.removed}
    if not removed:
        return changes, owners
    if owners is None:
        return [], None
    kept = [n for n, owner in enumerate(owners) if owner not in removed]
    return [changes[n] for n in kept], [owners[n] for n in kept]
