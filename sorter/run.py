"""Runs: blocks of changes of one or several tables, in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from ..codec.blocks import cut
from ..events import Block, Ts
from .keyspace import SortKeyspace

Bound: TypeAlias = tuple[Ts, Ts, int, bytes]
"""A place in the commit order: commit ts, start ts, op, key."""


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


class SortRun:
    """A block that is kept or moved as a whole. Owned by the Tier while that holds it; see there which thread
    may use what."""

    __slots__ = (
        "block",
        "bytes",
        "count",
        "first",
        "flushing",
        "newest",
        "place",
        "replacements",
        "tables",
    )

    def __init__(self, tables: Sequence[SortKeyspace], block: Block) -> None:
        """`block` has changes; their keyspaces are the uids of `tables`."""
        self.tables = tables
        """Tables of one group; may include some without changes here, since parts of a cut block share it."""
        self.first = first_of(block)
        self.newest = block.last_ts
        self.count = len(block)
        self.bytes = block.bytes
        self.block: Block | None = block
        """None once it is taken, or kept elsewhere: in `place`, or in `replacements`."""
        self.place: BlockLocation | None = None
        self.replacements: list[SortRun] | None = None
        """The runs that this one was merged into, shared with the others that were."""
        self.flushing = False
        """True while it is written to disk and still in memory."""

    def __str__(self) -> str:
        return f"{self.whose}: {self.count} changes of commit ts {self.first[0]} to {self.newest}"

    @property
    def whose(self) -> str:
        """Describe the tables that have changes in it, for people."""
        numbers = sorted({table.id for table in self.tables})
        if len(numbers) == 1:
            return f"table {numbers[0]}"
        return f"tables {', '.join(map(str, numbers[:10]))}{', ...' if len(numbers) > 10 else ''}"

    def without_removed(self, block: Block) -> Block:
        """Return the changes of a block of this run whose tables weren't removed."""
        removed = {table.uid for table in self.tables if table.removed}
        return block.without(removed) if removed else block


def floor(ts: Ts) -> Bound:
    """Return the place before all changes of this commit ts, and after those of earlier ones."""
    return ts, 0, 0, b""


def first_of(block: Block) -> Bound:
    first = block[0]
    return first.commit_ts, first.start_ts, first.op, first.key


def tables_of(runs: Iterable[SortRun]) -> Sequence[SortKeyspace]:
    """Return the tables of several runs, each once."""
    return tuple(dict.fromkeys([table for run in runs for table in run.tables]))


def runs_of(tables: Sequence[SortKeyspace], block: Block, count: int, max_bytes: int) -> list[SortRun]:
    """Cut a block into runs of at most `count` changes and about `max_bytes`."""
    return [SortRun(tables, part) for part in cut(block, count, max_bytes)]


def in_parts(runs: Iterable[SortRun], size: int) -> list[list[SortRun]]:
    """Group runs, in order, into lists of about `size` bytes."""
    lists: list[list[SortRun]] = [[]]
    room = size
    for run in runs:
        if room <= 0:
            lists.append([])
            room = size
        lists[-1].append(run)
        room -= run.bytes
    return lists
