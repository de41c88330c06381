"""The commit order of changes: sorting, and removing duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count, islice, pairwise
from operator import attrgetter, lt, ne
from typing import Final

from ..events import KvChange
from .run import Owners

SHORT: Final = 4
"""Transactions of fewer changes, on average, are sorted without a look."""

_commit_ts: Final = attrgetter("commit_ts")


def sort(changes: list[KvChange]) -> bool:
    """Sort into commit order; True if surely no two changes have the same commit ts and key.

    By the ts alone first: comparing ints is 3 times cheaper than structs.
    """
    changes.sort(key=_commit_ts)
    if are_distinct(changes):
        return True
    changes.sort()
    return False


def follow_each_other(lists: Sequence[list[KvChange]]) -> bool:
    """True if each list of sorted changes begins after the end of the one before it."""
    return all(before[-1] < after[0] for before, after in pairwise(lists))


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


def are_distinct(changes: list[KvChange]) -> bool:
    """True if changes that ascend by commit ts are in commit order, and surely no two of them have the same
    commit ts and key.

    That is so if each has a ts of its own, and if each transaction of many changes ascends by key, as most
    do: found in a fifth of the time of sorting.
    """
    stamps = [change.commit_ts for change in changes]
    begins = [0, *compress(count(1), map(ne, stamps, islice(stamps, 1, None)))]
    if len(begins) >= len(changes):
        return True
    if len(begins) * SHORT > len(changes):
        return False
    starts, ops = [change.start_ts for change in changes], [change.op for change in changes]
    keys = [change.key for change in changes]
    for at, end in zip(begins, [*begins[1:], len(changes)], strict=True):
        size = end - at
        if starts[at:end].count(starts[at]) < size or ops[at:end].count(ops[at]) < size:
            return False
        its_keys = keys[at:end]
        if not all(map(lt, its_keys, islice(its_keys, 1, None))):
            return False
    return True


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
