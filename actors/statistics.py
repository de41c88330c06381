"""What a system can say about its actors: who waits, on what, since when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .mailbox import Waiting

if TYPE_CHECKING:
    from .mailbox import Mailbox
    from .process import Process


@dataclass(frozen=True, slots=True)
class ActorStatistics:
    """One actor, at a moment. Counts are messages since it was spawned."""

    name: str
    state: str
    """starting, running, leaving, failed, pausing (before a restart) or stopped."""
    depth: int
    """Accepted and not yet delivered."""
    capacity: int
    received: int
    """Accepted; of these `undelivered` and `depth` did not reach the actor (yet)."""
    polls: int
    failed: int
    """Failures; messages lost with them count as delivered."""
    undelivered: int
    """Dropped: accepted but left when the actor stopped, or sent by it to an actor that was stopped."""
    outbox: int
    """Sent by it and not yet taken by their targets."""
    waiting_on: str | None
    """The full mailbox that its outbox waits on; until then it gets no messages."""
    since: float | None
    """The clock's `now()` when that began."""

    @classmethod
    def of(cls, process: Process) -> ActorStatistics:
        outbox = process.outbox
        target = None if outbox is None else outbox.waiting_on
        depth = process.depth
        return cls(
            name=process.name,
            state=process.state.value,
            depth=depth,
            capacity=process.capacity,
            received=process.taken + len(process.messages),
            polls=process.polls,
            failed=process.failures,
            undelivered=process.undelivered,
            outbox=0 if outbox is None else len(outbox),
            waiting_on=None if target is None else target.name,
            since=None if outbox is None or target is None else outbox.since,
        )


@dataclass(frozen=True, slots=True)
class SystemStatistics:
    """A system at a moment: its actors in the order spawned, and all who wait on a full mailbox."""

    name: str
    workers: int
    actors: tuple[ActorStatistics, ...]
    waiting: tuple[Waiting, ...]
    """Actors, threads in `tell` and tasks in `atell`."""


def waiting_on(mailbox: Mailbox) -> list[Waiting]:
    """Those in line, first come first."""
    if not mailbox.line:
        return []
    with mailbox.lock:
        line = list(mailbox.line or ())
    return [waiter.waiting(mailbox.name) for waiter in line]
