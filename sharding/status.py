"""State of a schema change that waits for shards, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .difference import difference
from .held_shards import HeldShards
from .merged_table import MergedTable
from .shared_lock import place_of

FEED: Final = "feed "
"""Beginning of the name of another feed among shards."""


class FeedWait(Struct, frozen=True):
    """One of several feeds whose shards go into the same table."""

    feed: str
    query: str
    """The change as its first shard made it; empty if not all of its shards have."""
    seconds: float | None
    """Time since all of its shards have made the change; None if they haven't."""
    is_running: bool = True
    """True if it runs now."""
    is_owner: bool = False
    """True if it executes the change."""
    step: str = ""
    """The change is "waiting", "executing" or "executed"."""


class LockStatus(Struct, frozen=True):
    id: str
    """Feed and merged table, as "feed-`schema`.`table`"."""
    sink: str
    owner: str
    """Shard that made the change first, whose statement is executed."""
    statement: str
    """The owner's statement."""
    place: str
    """The statement's source and position, by which a request names it."""
    synced: list[str]
    """Shards that have made the change; their later rows wait."""
    unsynced: list[str]
    """Shards that haven't."""
    seconds: float
    """Time since the owner's statement was read."""
    held_rows: int
    """Number of rows that wait."""
    further: int = 0
    """Number of further changes that shards have made before this one is resolved."""
    seeks: bool = False
    """True if more rows wait than may be held: they are read again once the change is resolved."""
    feeds: list[FeedWait] = []
    """All feeds that write into the table, if there are several."""


def status_of(
    merged: MergedTable, held: HeldShards, sink: str, now: float, feeds: Sequence[FeedWait] = ()
) -> LockStatus | None:
    """Return the state of a merged table's lock; None if it has none. Any thread.

    `feeds` are those that write into the table, this one among them, while a change waits for one of them.
    """
    own = _status_of(merged, held, sink, now)
    return own if not feeds else _among(merged, sink, own, feeds)


def _among(merged: MergedTable, sink: str, own: LockStatus | None, feeds: Sequence[FeedWait]) -> LockStatus:
    """Return the state of a lock with other feeds: their names are with this feed's shards."""
    owner = next((one for one in feeds if one.is_owner), feeds[0])
    shards = [str(shard) for shard in sorted(merged.shards)]
    before = own or LockStatus(merged.id, sink, "", "", "", [], shards, 0.0, 0)
    return replace(
        before,
        owner=f"{FEED}{owner.feed}",
        statement=owner.query,
        place=place_of(merged.number + 1),
        synced=[*before.synced, *[f"{FEED}{one.feed}" for one in feeds if one.query]],
        unsynced=[*before.unsynced, *[f"{FEED}{one.feed}" for one in feeds if not one.query]],
        seconds=max(before.seconds, *[one.seconds or 0.0 for one in feeds]),
        feeds=list(feeds),
    )


def _status_of(merged: MergedTable, held: HeldShards, sink: str, now: float) -> LockStatus | None:
    owner, lock = merged.sequence.owner, merged.lock
    if owner is None:
        return _conflict(merged, held, sink, now) or _differing(merged, sink)
    waiting = [one for shard in lock.synced if (one := held.get(shard)) is not None]
    return LockStatus(
        id=merged.id,
        sink=sink,
        owner=str(owner.shard),
        statement=owner.ddl.query,
        place=owner.place,
        synced=[str(shard) for shard in lock.synced],
        unsynced=[str(shard) for shard in lock.unsynced],
        seconds=now - min((one.since for one in waiting), default=now),
        held_rows=sum(one.rows for one in waiting),
        further=len(merged.sequence.longest) - 1,
        seeks=any(one.is_forgotten for one in waiting),
    )


def _conflict(merged: MergedTable, held: HeldShards, sink: str, now: float) -> LockStatus | None:
    """Return the state of a merged table with shards that wait in conflicts, in optimistic mode."""
    waiting = {
        shard: one
        for shard in sorted(merged.shards)
        if (one := held.get(shard)) is not None and one.conflict and one.sought is None
    }
    if not waiting:
        return None
    return LockStatus(
        id=merged.id,
        sink=sink,
        owner=str(next(iter(waiting))),
        statement="; ".join(f"{shard}: {one.conflict}" for shard, one in waiting.items()),
        place="",
        synced=[str(shard) for shard in sorted(merged.shards) if shard not in waiting],
        unsynced=[str(shard) for shard in waiting],
        seconds=now - min(one.since for one in waiting.values()),
        held_rows=sum(one.rows for one in waiting.values()),
        seeks=any(one.is_forgotten for one in waiting.values()),
    )


def _differing(merged: MergedTable, sink: str) -> LockStatus | None:
    """Return the state of a merged table whose shards differ, in optimistic mode."""
    differing = merged.differing()
    if not differing:
        return None
    first = differing[0]
    return LockStatus(
        id=merged.id,
        sink=sink,
        owner=str(first),
        statement=f"{first} {difference(merged.definition(first), merged.table)}",
        place="",
        synced=[str(shard) for shard in sorted(merged.shards) if shard not in differing],
        unsynced=[str(shard) for shard in differing],
        seconds=0.0,
        held_rows=0,
    )
