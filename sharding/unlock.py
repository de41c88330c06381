"""A person's request to resolve a schema change before all shards have made it."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ..errors import ConfigError
from .status import FEED, LockStatus

Action: TypeAlias = Literal["exec", "skip"]
ACTIONS: Final[tuple[Action, ...]] = ("exec", "skip")


class Unlock(Struct, frozen=True):
    """Concerns one statement: a later one with the same lock isn't resolved by it."""

    lock: str
    statement: str
    """Place of the owner's statement: `LockStatus.place`."""
    owner: str = ""
    """Shard whose statement is executed; empty: the lock's owner."""
    action: Action = "exec"
    """With "skip", the statement isn't executed, as the target has its effect already."""
    remove: str = ""
    """Feed that leaves for good: nothing waits for it any more."""


def plan_unlock(
    locks: list[LockStatus], lock: str, *, owner: str = "", action: str = "exec", remove: str = ""
) -> tuple[Unlock, list[str]]:
    """Return the request for a lock, and sentences about what it does. Raises ConfigError if it can't be."""
    waiting = [one for one in locks if one.id == lock]
    if not waiting:
        known = ", ".join(sorted({one.id for one in locks})) or "none"
        raise ConfigError(f"{lock}: no schema change waits with this lock; there are: {known}")
    status = waiting[0]
    if not status.place:
        raise ConfigError(f"{lock}: its shards differ, and no change waits: {status.statement}")
    if action not in ACTIONS:
        raise ConfigError(f"action = {action!r}: one of {', '.join(ACTIONS)}")
    if remove:
        return _plan_removal(status, remove)
    if status.feeds and owner and not owner.startswith(FEED):
        owner = f"{FEED}{owner}"
    if owner and owner not in status.synced:
        raise ConfigError(
            f"{owner} isn't waiting with {lock}: its statement isn't known; waiting are: "
            f"{', '.join(one for one in status.synced if one.startswith(FEED) or not status.feeds)}"
        )
    own = {f"{FEED}{one.feed}": one.query for one in status.feeds}
    statement = own.get(owner, status.statement)
    executes = f"execute {statement!r} of {owner or status.owner} in the merged table"
    sentences = [
        executes if action == "exec" else f"take {statement!r} as executed there already",
        f"let {', '.join(status.synced)} go on, with {status.held_rows} held rows"
        + (", and read the others again" if status.seeks else ""),
        f"skip the same statement of {', '.join(status.unsynced)} when it comes",
    ]
    sentences += [
        f"have {FEED}{one.feed} start again from its checkpoint, without the change"
        for one in status.feeds
        if not one.query and one.is_running
    ]
    return Unlock(lock, status.place, owner, action), sentences


def _plan_removal(status: LockStatus, feed: str) -> tuple[Unlock, list[str]]:
    """Return the request to remove a feed that leaves for good."""
    feed = feed.removeprefix(FEED)
    members = [one for one in status.feeds if one.feed == feed]
    if not members:
        known = ", ".join(one.feed for one in status.feeds) or "none"
        raise ConfigError(f"{status.id}: no feed {feed} shares the merged table; there are: {known}")
    if members[0].is_running:
        raise ConfigError(still_runs(feed))
    if members[0].is_owner and members[0].step == "executing":
        raise ConfigError(
            f"feed {feed} may have executed {status.statement!r}: let another feed finish it first, by "
            "--owner"
        )
    sentences = [f"wait for {FEED}{feed} no more; its rows stay, and it can't continue"]
    if members[0].is_owner:
        others = [one.feed for one in status.feeds if one.query and one.feed != feed]
        sentences.append(
            f"have {FEED}{others[0]} execute {status.statement!r}"
            if others
            else f"forget {status.statement!r}, which no other feed has made"
        )
    return Unlock(status.id, status.place, remove=feed), sentences


def still_runs(feed: str) -> str:
    """Return the reason why a feed can't be removed."""
    return f"feed {feed} runs: stop it before it is removed"
