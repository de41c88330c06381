"""Cutting changes into runs, and runs into lists, of limited size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from operator import le

from ..events import KvChange
from .run import Owners, Run, floor
from .size import measure
from .table import Table


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
    ascends = all(map(le, ts, islice(ts, 1, None)))
    return [Run(tables, owners, changes, size, floor(min(ts)), max(ts), False, ascends)]


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
