"""Checks of shards before their first load: definitions, extracted columns, and keys that meet."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import pairwise
from typing import Final, Protocol

from ..errors import SinkError
from ..events import OrderedKey, Table
from .difference import difference
from .route import Route, Routes

log = logging.getLogger("tidemill.sharding")

MAX_NAMED: Final = 3
"""Maximum number of duplicate keys that an error names."""


class KeySpace(Protocol):
    """The keys of one table of a source, as of one moment."""

    source: str
    """Name of the source; empty for the feed's only one."""
    table: Table

    def ends(self) -> tuple[OrderedKey, OrderedKey] | None:
        """Return the lowest and highest key; None for an empty table."""

    def keys(self) -> Iterator[OrderedKey] | None:
        """Return all keys in order; None if they can't be compared."""


class _Shard:
    def __init__(self, route: Route, space: KeySpace) -> None:
        self.route = route
        self.space = space
        self.table = route.table(space.table)

    def __str__(self) -> str:
        return str(self.route.shard)


def check_shards(routes: Routes, spaces: Sequence[KeySpace], *, keys: bool) -> None:
    """Raise SinkError for shards that can't be merged as they are; without `keys`, those aren't compared."""
    targets: dict[tuple[str, str], list[_Shard]] = {}
    for space in spaces:
        route = routes.find(space.source, space.table.schema, space.table.name)
        if route is not None:
            targets.setdefault(route.target, []).append(_Shard(route, space))
    _reject_taken(targets, spaces, routes)
    for shards in targets.values():
        _check_definitions(shards)
        if keys:
            _check_keys(shards)


def _reject_taken(
    targets: dict[tuple[str, str], list[_Shard]], spaces: Sequence[KeySpace], routes: Routes
) -> None:
    for space in spaces:
        name = space.table.schema, space.table.name
        if name in targets and routes.find(space.source, *name) is None:
            raise SinkError(
                f"route: {'.'.join(name)} is a table of its own, and the target of "
                f"{', '.join(map(str, targets[name]))}: route it too, exclude it, or change the target"
            )


def _check_definitions(shards: Sequence[_Shard]) -> None:
    first = shards[0]
    for shard in shards[1:]:
        if mismatch := difference(shard.table, first.table):
            raise SinkError(
                f"{shard} can't be merged with {first} into {first.table.full_name}: it {mismatch}: make "
                "them the same, or exclude one"
            )


def _check_keys(shards: Sequence[_Shard]) -> None:
    """Raise SinkError if rows of two shards have the same key in the merged table.

    Shards whose keys are in disjoint ranges are found by their ends; of others, all keys are read.
    """
    if not shards[0].table.key:
        return
    alike: dict[tuple[object, ...], list[_Shard]] = {}
    for shard in shards:
        alike.setdefault(_key_values(shard), []).append(shard)
    for group in alike.values():
        for meeting in _meeting(group):
            _reject_duplicates(meeting)


def _key_values(shard: _Shard) -> tuple[object, ...]:
    """Return the extracted values in the shard's key."""
    table, values = shard.table, shard.route.values
    first = len(table.columns) - len(values)
    return tuple(values[index - first] for index in table.key if index >= first)


def _meeting(shards: Sequence[_Shard]) -> Iterator[list[_Shard]]:
    """Yield sets of shards whose ranges of keys meet."""
    if len(shards) < 2:
        return
    spaces = [(ends, shard) for shard in shards if (ends := shard.space.ends()) is not None]
    spaces.sort(key=lambda one: one[0])
    meeting: list[_Shard] = []
    last: OrderedKey = ()
    for (low, high), shard in spaces:
        if meeting and low > last:
            if len(meeting) > 1:
                yield meeting
            meeting = []
        meeting.append(shard)
        last = max(last, high) if len(meeting) > 1 else high
    if len(meeting) > 1:
        yield meeting


def _reject_duplicates(shards: Sequence[_Shard]) -> None:
    streams = []
    for number, shard in enumerate(shards):
        keys = shard.space.keys()
        if keys is None:
            log.warning("%s: its keys can't be compared here: a duplicate one stops the feed", shard)
            return
        streams.append(_numbered(keys, number))
    named: list[str] = []
    for (key, one), (other, two) in pairwise(merge(*streams)):
        if key == other:
            named.append(f"{_text(key)} is in {shards[one]} and {shards[two]}")
            if len(named) == MAX_NAMED:
                break
    if named:
        table = shards[0].table
        columns = ", ".join(table.columns[index].name for index in table.key)
        raise SinkError(
            f"{table.full_name}: rows of its shards have the same key ({columns}): {'; '.join(named)}: "
            "extract a column that tells the shards apart (route.extract), or change the keys"
        )


def _numbered(keys: Iterator[OrderedKey], number: int) -> Iterator[tuple[OrderedKey, int]]:
    return ((key, number) for key in keys)


def _text(key: OrderedKey) -> str:
    return f"({', '.join(map(str, key))})"
