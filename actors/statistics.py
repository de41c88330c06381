"""Statistics of a system: its actors, and which of them wait, on what, since when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .life import State
from .mailbox import Waiting

if TYPE_CHECKING:
    from .life import Life
    from .process import Process


@dataclass(frozen=True, slots=True)
class ActorStatistics:
    """One actor at one moment. Counts start at its spawn and include restarts."""

    name: str
    state: str
    """starting, running, leaving, failed, pausing (before a restart) or stopped."""
    depth: int
    """Messages in its mailbox."""
    capacity: int
    received: int
    """Messages accepted: those delivered, dropped, in the mailbox or taken out for its turn."""
    delivered: int
    dropped: int
    """Messages left in the mailbox when it stopped."""
    polls: int
    failed: int
    outbox: int
    """Messages sent by it and not yet taken by their targets."""
    undelivered: int
    """Messages sent by it that were never taken: the target had stopped, or it was a deadlock."""
    waiting_on: str | None
    """The full mailbox that its outbox waits on, or "restart": until then it gets no messages."""
    since: float | None
    """The clock's `now()` when that began."""
    turn_since: float | None
    """The clock's `now()` when its turn began, if it has one now: it works, or blocks in a driver."""

    @classmethod
    def of(cls, process: Process) -> ActorStatistics:
        outbox = process.outbox
        target = None if outbox is None else outbox.waiting_on
        waiting_on = since = None
        if outbox is not None and target is not None:
            waiting_on, since = target.name, outbox.since
        elif process.respawn is not None and process.state is State.PAUSING:
            waiting_on, since = "restart", process.respawn.failed_at
        in_hand = len(process.hand or ())
        return cls(
            name=process.name,
            state=process.state.value,
            depth=len(process.messages),
            capacity=process.capacity,
            received=process.taken + len(process.messages),
            delivered=process.taken - process.dropped - in_hand,
            dropped=process.dropped,
            polls=process.polls,
            failed=process.failures,
            outbox=0 if outbox is None else len(outbox),
            undelivered=process.undelivered,
            waiting_on=waiting_on,
            since=since,
            turn_since=process.turn_since,
        )


@dataclass(slots=True)
class Totals:
    """Counts summed over actors."""

    failed: int = 0
    dropped: int = 0
    undelivered: int = 0

    def add(self, process: Life) -> None:
        self.failed += process.failures
        self.dropped += process.dropped
        self.undelivered += process.undelivered


@dataclass(frozen=True, slots=True)
class SystemStatistics:
    """A system at one moment."""

    name: str
    workers: int
    actors: tuple[ActorStatistics, ...]
    """In the order spawned; without those that have stopped."""
    waiting: tuple[Waiting, ...]
    """Actors, threads and tasks that wait for room in the mailbox of one of these actors. An actor that
    waits for room elsewhere (another system, a stream) has it in its own figures."""
    totals: Totals
    """Over all actors, those that have stopped included."""


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """A stream at one moment."""

    name: str
    depth: int
    """Items accepted and not yet read."""
    capacity: int
    waiting: tuple[Waiting, ...]
    """The actors that wait for room in it."""
