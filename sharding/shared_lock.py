"""The lock of one merged table among several feeds, as a pure state machine.

A change of the table has a number, the same for all feeds. Its steps are:

    waiting ──every feed has reported it──▶ executing ──the owner's checkpoint has it──▶ executed
                                                              └▶ gone, once every feed has passed it

A feed reports a change when all its shards have made it and its rows before it are in the target. The first
is the owner, which executes it; the others then continue by the definition that the owner's change made.
Every transition may be repeated: a feed that was killed makes it again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..errors import ConfigError, InvariantViolated, SinkError
from ..events import Table
from .difference import difference
from .sequence import WrongSequence

Step: TypeAlias = Literal["waiting", "executing", "executed"]
Force: TypeAlias = Literal["", "exec", "skip"]


class ShardReport(Struct, frozen=True):
    """A feed's change, made by all its shards."""

    shard: str
    """The feed's first shard that made it."""
    query: str
    time: float
    """Unix time of the report."""
    is_partial: bool = False
    """True if some of its shards haven't made it: a person decided not to wait for them."""


class LockChange(Struct, frozen=True):
    number: int
    form: str
    """Effect of the statement; see `form_of`."""
    owner: str
    """Feed that executes it."""
    reports: dict[str, ShardReport]
    """By feed, in the order in which they came."""
    step: Step = "waiting"
    table: Table | None = None
    """Definition of the merged table after it; None before it is executing."""
    forced: Force = ""
    """A person's decision not to wait for all feeds; with "skip" the target has the effect already."""
    excused: tuple[str, ...] = ()
    """Feeds that haven't made a forced change, and that write nothing by the old definition any more."""


class SharedLock(Struct, frozen=True):
    table: Table
    """Definition of the merged table after change `number`."""
    number: int = 0
    """Number of the last executed change."""
    feeds: dict[str, int] = {}
    """Number of the last change that each feed has passed."""
    changes: tuple[LockChange, ...] = ()
    """Changes that some feed hasn't passed, by number."""
    is_older: bool = False
    """True if the merged table is older than the lock: one feed had loaded it before it was shared."""

    def change(self, number: int) -> LockChange | None:
        return next((one for one in self.changes if one.number == number), None)

    def unsynced(self, change: LockChange) -> list[str]:
        """Return the feeds that haven't reported a change."""
        return sorted(
            feed
            for feed, passed in self.feeds.items()
            if passed < change.number and feed not in change.reports and feed not in change.excused
        )

    def _with(self, change: LockChange) -> SharedLock:
        changes = [one for one in self.changes if one.number != change.number]
        return replace(self, changes=tuple(sorted([*changes, change], key=lambda one: one.number)))


class BeingExecuted(Exception):
    """A feed can't join now, as a change is executed that it hasn't reported; it can later."""


def join(lock: SharedLock | None, feed: str, table: Table) -> SharedLock:
    """Add a feed with its first shard, routed as `table`; without a lock, the merged table is created so.

    Raises SinkError if the definitions differ, and BeingExecuted.
    """
    if lock is None:
        return SharedLock(table, feeds={feed: 0})
    for change in lock.changes:
        if change.step == "executing":
            raise BeingExecuted(f"feed {change.owner} executes {_quoted(change)}")
    if mismatch := difference(table, lock.table):
        waiting = "; ".join(_quoted(one) for one in lock.changes if one.step == "waiting")
        raise SinkError(
            f"a shard of feed {feed} differs from the merged table {table.full_name}: it {mismatch}"
            + (f"; this change waits for other feeds: {waiting}" if waiting else "")
            + ": make the columns the same, and start the feed again"
        )
    if feed in lock.feeds:  # from an earlier life, before its first checkpoint
        lock = remove(lock, feed)
    return _swept(replace(lock, feeds={**lock.feeds, feed: lock.number}))


def rejoin(lock: SharedLock | None, feed: str, number: int, table: Table) -> SharedLock:
    """Add a feed that continues after change `number`, by which the merged table is `table`.

    Raises SinkError if it was removed, and changes were executed since.
    """
    if lock is None:
        return SharedLock(table, number, {feed: number}, is_older=True)
    if number >= lock.feeds.get(feed, number + 1):
        return lock
    if number != lock.number or any(one.step == "executing" for one in lock.changes):
        raise SinkError(
            f"feed {feed} is at change {number} of {table.full_name}, and the feeds that share it are at "
            f"{lock.number}: it was removed by tidemill unlock, or its checkpoint is an old one: load "
            "everything into an empty target"
        )
    if mismatch := difference(table, lock.table):
        raise SinkError(f"{table.full_name} differs from that of the other feeds: it {mismatch}")
    return replace(lock, feeds={**lock.feeds, feed: number})


def report(lock: SharedLock, feed: str, number: int, form: str, said: ShardReport) -> SharedLock:
    """Note that all shards of a feed have made a change. Raises WrongSequence for another one."""
    change = lock.change(number)
    if change is None:
        if number != lock.number + 1:
            raise InvariantViolated(f"feed {feed} reports change {number} after {lock.number}")
        return lock._with(LockChange(number, form, feed, {feed: said}))
    if change.form != form:
        first = change.reports[change.owner]
        raise WrongSequence(
            f"{said.shard} of feed {feed} and {first.shard} of feed {change.owner} are merged, and their "
            f"schema changes differ: {first.shard}: {first.query}; {said.shard}: {said.query}: shards must "
            "make the same changes in the same order. Undo the different one in its shards and load "
            "everything into an empty target"
        )
    if change.step == "executed" or feed in change.reports:
        return lock
    return lock._with(replace(change, reports={**change.reports, feed: said}))


def can_take(lock: SharedLock, feed: str, number: int) -> bool:
    """Return True if this feed may execute the change now."""
    change = lock.change(number)
    return (
        change is not None and change.owner == feed and change.step == "waiting" and not lock.unsynced(change)
    )


def take(lock: SharedLock, feed: str, number: int, table: Table) -> SharedLock:
    """Begin to execute a change, which makes the merged table `table`, if the feed may."""
    change = lock.change(number)
    if change is None or not can_take(lock, feed, number):
        return lock
    if change.forced == "skip":
        return _executed(lock, change, table)
    return lock._with(replace(change, step="executing", table=table))


def passed(lock: SharedLock, feed: str, number: int, table: Table) -> SharedLock:
    """Note that a feed's checkpoint has a change: then the target has it, too."""
    change = lock.change(number)
    if change is not None and change.step != "executed":
        lock = _executed(lock, change, table)
    if feed not in lock.feeds:
        return lock
    return _swept(replace(lock, feeds={**lock.feeds, feed: max(number, lock.feeds[feed])}))


def excuse(lock: SharedLock, feed: str, number: int) -> SharedLock:
    """Note that a feed writes nothing by the old definition any more, although it hasn't made the change."""
    change = lock.change(number)
    if change is None or not change.forced or feed in change.reports or feed in change.excused:
        return lock
    return lock._with(replace(change, excused=(*change.excused, feed)))


def force(lock: SharedLock, number: int, action: Force, owner: str = "") -> SharedLock:
    """Resolve a change without the feeds that haven't reported it, once each is excused.

    `owner` names another feed that executes it. Raises ConfigError if that one hasn't reported it.
    """
    change = lock.change(number)
    if change is None or change.step == "executed":
        return lock
    owner = owner or change.owner
    if owner not in change.reports:
        raise ConfigError(
            f"feed {owner} hasn't reported {_quoted(change)}; these have: {', '.join(change.reports)}"
        )
    step: Step = "waiting" if owner != change.owner else change.step
    # All shards of a feed must have made it, unless this feed executes it.
    reports = {feed: said for feed, said in change.reports.items() if feed == owner or not said.is_partial}
    return lock._with(replace(change, forced=action, owner=owner, step=step, reports=reports))


def excuse_stopped(lock: SharedLock, number: int, running: Collection[str]) -> SharedLock:
    """Excuse the feeds that don't run from a forced change: they look at the lock before they write."""
    change = lock.change(number)
    if change is None or not change.forced:
        return lock
    stopped = [feed for feed in lock.unsynced(change) if feed not in running]
    return lock._with(replace(change, excused=(*change.excused, *stopped)))


def remove(lock: SharedLock, feed: str) -> SharedLock:
    """Remove a feed that leaves for good; its rows stay. A change that only it made is gone, too.

    Raises ConfigError if it may have executed a change: another feed has to execute that first.
    """
    changes = []
    for change in lock.changes:
        reports = {name: said for name, said in change.reports.items() if name != feed}
        if change.owner == feed and change.step != "executed":
            if change.step == "executing":
                raise ConfigError(
                    f"feed {feed} may have executed {_quoted(change)}: let another feed finish it first, by "
                    "--owner"
                )
            if not reports:
                continue
            change = replace(change, owner=next(iter(reports)))
        changes.append(replace(change, reports=reports))
    feeds = {name: number for name, number in lock.feeds.items() if name != feed}
    return _swept(replace(lock, feeds=feeds, changes=tuple(changes)))


def place_of(number: int) -> str:
    """Return the name of a change in requests."""
    return f"change {number}"


def _executed(lock: SharedLock, change: LockChange, table: Table) -> SharedLock:
    done = replace(change, step="executed", table=change.table or table)
    return replace(lock._with(done), number=change.number, table=done.table)


def _swept(lock: SharedLock) -> SharedLock:
    """Remove the changes that all feeds have passed."""
    lowest = min(lock.feeds.values(), default=lock.number)
    left = tuple(one for one in lock.changes if one.step != "executed" or one.number > lowest)
    return replace(lock, changes=left)


def _quoted(change: LockChange) -> str:
    said = change.reports.get(change.owner)
    return repr(said.query) if said is not None else f"change {change.number}"
