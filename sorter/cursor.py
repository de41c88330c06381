"""Merge cursors over runs, and the slices taken from them."""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain, compress, repeat
from operator import not_

from msgspec import Struct

from ..events import KvChange, Ts
from .order import are_distinct, has_repeated, once, sort, sort_owned
from .run import Owners, Run, floor, without_removed
from .table import Table


class MergeCursor:
    """A run that is being merged. Its changes from `at` on; None while they are read from disk."""

    __slots__ = ("at", "changes", "is_sorted", "owners", "run")

    def __init__(self, run: Run, changes: list[KvChange] | None, owners: Owners) -> None:
        self.run = run
        self.at = 0
        self.is_sorted = run.is_sorted
        self.changes = changes
        self.owners = owners

    def load(self, changes: list[KvChange], owners: Owners) -> None:
        self.changes, self.owners = without_removed(self.run.tables, owners, changes)

    def find(self, bound: KvChange) -> int:
        """Partition the changes by the bound; return the index of the first at or above it. May move `at`."""
        assert self.changes is not None
        if self.run.newest < bound.commit_ts:
            return len(self.changes)
        if not self.is_sorted:
            if not self.at and bound == floor(bound.commit_ts):
                return self._part(bound.commit_ts)
            owners = None if self.owners is None else self.owners[self.at :]
            self.changes, self.owners = sort_owned(self.changes[self.at :], owners)
            self.at = 0
            self.is_sorted = True
        return bisect_left(self.changes, bound, self.at)

    def _part(self, ts: Ts) -> int:
        """Move the changes before `ts` to the front: a third of the cost of sorting, and the rest mostly
        leaves later as a whole."""
        changes = self.changes or []
        before = [change.commit_ts < ts for change in changes]
        after = list(map(not_, before))
        self.changes = [*compress(changes, before), *compress(changes, after)]
        if self.owners is not None:
            self.owners = [*compress(self.owners, before), *compress(self.owners, after)]
        return sum(before)


class Slice(Struct, frozen=True, gc=False):
    """Changes of one run that leave together."""

    run: Run
    changes: list[KvChange]
    owners: Owners
    is_sorted: bool


def join(slices: list[Slice]) -> list[KvChange]:
    """Return the changes in commit order, without duplicates."""
    if not slices:
        return []
    if len(slices) == 1 and slices[0].is_sorted:
        changes = slices[0].changes
        distinct = are_distinct(changes)
    else:
        changes = list(chain.from_iterable([s.changes for s in slices]))
        distinct = sort(changes)
    if distinct or not has_repeated(changes):
        return changes
    by_table: dict[Table, list[KvChange]] = {}
    for s in slices:
        for change, owner in zip(s.changes, s.owners or repeat(0)):  # noqa: B905
            by_table.setdefault(s.run.tables[owner], []).append(change)
    changes = []
    for its_changes in by_table.values():
        sort(its_changes)
        changes += once(its_changes)
    sort(changes)
    return changes
