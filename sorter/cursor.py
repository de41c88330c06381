"""Merge cursors over runs, and the slices taken from them."""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain, compress, repeat
from operator import attrgetter, not_
from typing import Final

from msgspec import Struct

from ..events import KvChange, Ts
from .order import are_distinct, follow_each_other, has_repeated, once, sort, sort_owned
from .run import Owners, Run, floor, without_removed
from .table import Table

_commit_ts: Final = attrgetter("commit_ts")


class MergeCursor:
    """A run that is being merged. Its changes from `at` on; None while they are read from disk."""

    __slots__ = ("ascends", "at", "changes", "first", "is_sorted", "owners", "run")

    def __init__(self, run: Run, changes: list[KvChange] | None, owners: Owners) -> None:
        self.run = run
        self.at = 0
        self.first = run.first
        """A change that sorts at or before all from `at` on."""
        self.is_sorted, self.ascends = run.is_sorted, run.ascends
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
            if bound == floor(bound.commit_ts):
                if self.ascends:
                    return bisect_left(self.changes, bound.commit_ts, self.at, key=_commit_ts)
                if not self.at:
                    return self._part(bound.commit_ts)
            owners = None if self.owners is None else self.owners[self.at :]
            self.changes, self.owners = sort_owned(self.changes[self.at :], owners)
            self.at = 0
            self.is_sorted = self.ascends = True
        return bisect_left(self.changes, bound, self.at)

    def advance(self, end: int) -> None:
        """Note that the changes up to `end` were taken."""
        assert self.changes is not None
        self.at = end
        if self.ascends and end < len(self.changes):
            self.first = floor(self.changes[end].commit_ts)

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

    @property
    def is_ordered(self) -> bool:
        """True if the changes are in commit order, and none of their only table comes twice."""
        return self.is_sorted and self.owners is None and self.run.tables[0].is_ordered


def join(slices: list[Slice]) -> list[KvChange]:
    """Return the changes in commit order, without duplicates."""
    lists = [s.changes for s in slices]
    are_ordered = all(s.is_ordered for s in slices)
    if len(slices) == 1 and slices[0].is_sorted:
        changes = lists[0]
        distinct = are_ordered or are_distinct(changes)
    else:
        changes = list(chain.from_iterable(lists))
        distinct = (are_ordered and follow_each_other(lists)) or sort(changes)
    if distinct or are_ordered or not has_repeated(changes):
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
