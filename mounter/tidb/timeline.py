"""Timelines: the versions of a table, and the owners of a partition, by ts."""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeVar

from msgspec import Struct

from ...events import Ts
from .infos import StoredInfo


class TableVersion(Struct, frozen=True, gc=False):
    """A table's definition from a ts on."""

    since: Ts
    schema_id: int
    schema: str
    name: str
    place: StoredInfo | None
    """Place of the encoded info; None if the table was dropped."""
    partitions: tuple[int, ...]


class PartitionOwner(Struct, frozen=True, gc=False):
    """The table that a partition belongs to from a ts on; 0 for none."""

    since: Ts
    table_id: int


_Timed = TypeVar("_Timed", TableVersion, PartitionOwner)


def entry_at(timeline: tuple[_Timed, ...], ts: Ts) -> _Timed | None:
    """Return the last entry at or below ts; None if there is none."""
    if len(timeline) == 1 and timeline[0].since <= ts:
        return timeline[0]
    index = bisect_right(timeline, ts, key=_since_of)
    return timeline[index - 1] if index else None


def entries_since(timeline: tuple[_Timed, ...], ts: Ts) -> tuple[_Timed, ...]:
    """Return the last entry at or below ts, and all entries above."""
    return timeline[max(0, bisect_right(timeline, ts, key=_since_of) - 1) :]


def _since_of(entry: TableVersion | PartitionOwner) -> Ts:
    return entry.since
