"""Runs: changes of one or several tables, in memory or on disk."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

import msgspec

from ..events import KvChange, Ts

_commit_ts: Final = attrgetter("commit_ts")

_OBJECT_BYTES: Final = 208
"""Memory overhead of a change: the struct, the headers of its bytes and ints, two list slots."""


_STRIDE: Final = 13
"""An estimate samples every 13th change; a prime, so that it doesn't follow a pattern."""


class Table:
    """A keyspace of a sorter: one table, or a source stream that is already in order."""

    __slots__ = ("group", "id", "removed", "resolved", "since", "store", "uid")

    def __init__(
        self, table_id: int, uid: int, store: int, resolved: Ts, since: float, group: Hashable = None
    ) -> None:
        self.id = table_id
        self.uid = uid
        """Unique in the process: a table removed and added again never meets its old changes."""
        self.store = store
        """The number of the store that its changes go to."""
        self.group = store if group is None else group
        """Tables of the same group may share a run; they have the same store."""
        self.resolved = resolved
        """Everything at or below it has been added. Written under the lock of Arrivals."""
        self.since = since
        """The clock's `now()` when `resolved` last moved."""
        self.removed = False


class Place(msgspec.Struct, frozen=True):
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
        self.count = len(changes)
        self.bytes = size
        """Bytes that the changes take in memory."""
        self.changes: list[KvChange] | None = changes
        """None once they are taken, or kept elsewhere: in `place`, or in `replacements`."""
        self.place: Place | None = None
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


def sort(changes: list[KvChange]) -> bool:
    """Sort into commit order; True if each change has a commit ts of its own.

    By the ts alone first: comparing ints is 3 times cheaper than structs.
    """
    changes.sort(key=_commit_ts)
    if _are_distinct(changes):
        return True
    changes.sort()
    return False


def sort_owned(changes: list[KvChange], owners: Owners) -> tuple[list[KvChange], Owners]:
    """Return the changes in commit order, and their owners."""
    if owners is None:
        sort(changes)
        return changes, None
    ts = [change.commit_ts for change in changes]
    order = sorted(range(len(ts)), key=ts.__getitem__)
    if len(set(ts)) < len(ts):
        order.sort(key=changes.__getitem__)
    return [changes[n] for n in order], [owners[n] for n in order]


def _are_distinct(changes: list[KvChange]) -> bool:
    # The first two tell most sources apart, without a look at all.
    if len(changes) > 1 and changes[0].commit_ts == changes[1].commit_ts:
        return False
    return len({change.commit_ts for change in changes}) == len(changes)


def has_repeated(changes: list[KvChange]) -> bool:
    """True if two changes may have the same commit ts and key."""
    return len({(change.commit_ts, change.key) for change in changes}) < len(changes)


def once(changes: list[KvChange]) -> list[KvChange]:
    """Remove duplicates from sorted changes of one table: a store may send some again after a retry."""
    return changes[:1] + [
        change
        for before, change in pairwise(changes)
        if change.key != before.key
        or change.op != before.op
        or change.commit_ts != before.commit_ts
        or change.start_ts != before.start_ts
    ]


def measure(changes: list[KvChange]) -> int:
    """Return the bytes that the changes take in memory; the first key's length stands for all keys."""
    each = _OBJECT_BYTES + len(changes[0].key)
    return len(changes) * each + sum([len(c.value) + len(c.old_value) for c in changes])


def estimate(changes: list[KvChange]) -> int:
    """Estimate `measure` from a sample: looking at each value would be a third of all the work."""
    if len(changes) < 4 * _STRIDE:
        return measure(changes)
    some = changes[::_STRIDE]
    sizes = [len(change.value) + len(change.old_value) for change in some]
    total = sum(sizes)
    if max(sizes) * len(sizes) > 8 * total:  # a few large ones among small: others may be between
        return measure(changes)
    return len(changes) * (_OBJECT_BYTES + len(changes[0].key) + total // len(sizes))


def make_runs(
    tables: Sequence[Table],
    owners: Owners,
    changes: list[KvChange],
    count: int,
    max_bytes: int,
    size_of: Callable[[list[KvChange]], int] = measure,
) -> list[Run]:
    """Cut changes, in the order they came, into runs of at most `count` changes and about `max_bytes`."""
    if len(changes) > count:
        parts = _cut(changes, owners, count)
        return [
            run for part in parts for run in make_runs(tables, part[1], part[0], count, max_bytes, size_of)
        ]
    size = size_of(changes)
    step = _step(len(changes), size, count, max_bytes)
    if len(changes) > step:
        return make_runs(tables, owners, changes, step, max_bytes, size_of)
    ts = [change.commit_ts for change in changes]
    return [Run(tables, owners, changes, size, floor(min(ts)), max(ts), False)]


def cut_sorted(
    tables: Sequence[Table], owners: Owners, changes: list[KvChange], size: int, count: int, max_bytes: int
) -> list[Run]:
    """Cut sorted changes of `size` bytes into runs of at most `count` changes and about `max_bytes`."""
    step = _step(len(changes), size, count, max_bytes)
    each = size // len(changes)
    runs = []
    for part, its_owners in _cut(changes, owners, step):
        first = part[0]
        small = KvChange(first.commit_ts, first.start_ts, first.op, first.key, b"")
        its_tables, its_owners = _own(tables, its_owners)
        runs.append(Run(its_tables, its_owners, part, each * len(part), small, part[-1].commit_ts, True))
    runs[-1].bytes += size - sum(run.bytes for run in runs)
    return runs


def _step(length: int, size: int, count: int, max_bytes: int) -> int:
    return max(1, min(count, max_bytes // max(1, size // length)))


def _cut(changes: list[KvChange], owners: Owners, step: int) -> list[tuple[list[KvChange], Owners]]:
    if len(changes) <= step:
        return [(changes, owners)]
    return [
        (changes[n : n + step], None if owners is None else owners[n : n + step])
        for n in range(0, len(changes), step)
    ]


def _own(tables: Sequence[Table], owners: Owners) -> tuple[Sequence[Table], Owners]:
    """Return only the tables that own changes, each once, and the owners renumbered."""
    if owners is None:
        return tables, None
    its_tables = dict.fromkeys(map(tables.__getitem__, owners))
    if len(its_tables) == 1:
        return tuple(its_tables), None
    numbers = {table: n for n, table in enumerate(its_tables)}
    return tuple(its_tables), [numbers[tables[n]] for n in owners]


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


def split(runs: list[Run], size: int) -> list[list[Run]]:
    """Group runs, in order, into lists of about `size` bytes."""
    lists: list[list[Run]] = [[]]
    room = size
    for run in runs:
        if room <= 0:
            lists.append([])
            room = size
        lists[-1].append(run)
        room -= run.bytes
    return lists
