"""A table's changes in order, wherever they are kept."""

from __future__ import annotations

from itertools import pairwise
from operator import attrgetter
from typing import Final

import msgspec

from ..events import KvChange, Ts
from ..store import Window

_commit_ts: Final = attrgetter("commit_ts")

_OBJECT_BYTES: Final = 200
"""What a change takes beyond its contents: the struct, the headers of its bytes and ints, a slot."""


class Table:
    """One keyspace of a sorter: a table, or a source stream that is in order already."""

    __slots__ = ("id", "removed", "resolved", "since", "store", "uid")

    def __init__(self, table_id: int, uid: int, store: int, resolved: Ts, since: float) -> None:
        self.id = table_id
        self.uid = uid
        """Unique in the process: a table removed and added again never meets its old changes."""
        self.store = store
        """The number of the store that its changes go to."""
        self.resolved = resolved
        """Everything at or below has been added. Written by the table's Writer only."""
        self.since = since
        """The clock's `now()` when `resolved` last moved."""
        self.removed = False


class Place(msgspec.Struct, frozen=True):
    """Where on disk a run is: the keys from `lower` to `upper`, both included, of a window."""

    window: Window
    lower: bytes
    upper: bytes
    keys: int
    """How many of the keys in between are the run's own."""
    bytes: int


class Run:
    """Changes of one table, sorted. Who may touch what: see Tier, which owns these while it holds them."""

    __slots__ = (
        "bytes", "changes", "count", "first", "heirs", "leaving", "newest", "place", "single", "table",
    )  # fmt: skip

    def __init__(self, table: Table, changes: list[KvChange], size: int, single: bool) -> None:
        first = changes[0]
        self.table = table
        self.first = KvChange(first.commit_ts, first.start_ts, first.op, first.key, b"")
        """Sorts at or before every change of the run; has no value, so that it stays small."""
        self.newest = changes[-1].commit_ts
        self.single = single
        """Each change has a commit ts of its own."""
        self.count = len(changes)
        self.bytes = size
        """What the changes take in memory."""
        self.changes: list[KvChange] | None = changes
        """None once they are taken, or kept elsewhere: in `place`, or by the `heirs`."""
        self.place: Place | None = None
        self.heirs: list[Run] | None = None
        """The runs that this one was merged into, shared with the others that were."""
        self.leaving = False
        """On its way to disk, still in memory."""


def sort(changes: list[KvChange]) -> bool:
    """Sort into commit order; True if each change has a commit ts of its own.

    By the ts alone first: comparing ints is 3 times cheaper than structs.
    """
    changes.sort(key=_commit_ts)
    # The first two tell most sources apart, without a look at all.
    if _are_distinct(changes[:2]) and _are_distinct(changes):
        return True
    changes.sort()
    return False


def _are_distinct(changes: list[KvChange]) -> bool:
    return len({change.commit_ts for change in changes}) == len(changes)


def once(changes: list[KvChange]) -> list[KvChange]:
    """Sorted changes of one table, each once: a store that was asked again may send some again."""
    if len({(change.commit_ts, change.key) for change in changes}) == len(changes):
        return changes
    return changes[:1] + [
        change
        for before, change in pairwise(changes)
        if change.key != before.key
        or change.op != before.op
        or change.commit_ts != before.commit_ts
        or change.start_ts != before.start_ts
    ]


def measure(changes: list[KvChange]) -> int:
    """Bytes that the changes take in memory; of the keys, which are short, one stands for all."""
    each = _OBJECT_BYTES + len(changes[0].key)
    return len(changes) * each + sum([len(c.value) + len(c.old_value) for c in changes])


def cut(
    table: Table, changes: list[KvChange], size: int, single: bool, count: int, max_bytes: int
) -> list[Run]:
    """Runs of at most `count` changes and about `max_bytes` out of sorted changes of `size` bytes."""
    each = size // len(changes)
    step = max(1, min(count, max_bytes // max(1, each)))
    if len(changes) <= step:
        return [Run(table, changes, size, single)]
    runs = [
        Run(table, part, each * len(part), single)
        for part in (changes[i : i + step] for i in range(0, len(changes), step))
    ]
    runs[-1].bytes += size - each * len(changes)
    return runs


def split(runs: list[Run], size: int) -> list[list[Run]]:
    """Runs in order, in lists of about `size` bytes."""
    lists: list[list[Run]] = [[]]
    room = size
    for run in runs:
        if room <= 0:
            lists.append([])
            room = size
        lists[-1].append(run)
        room -= run.bytes
    return lists
