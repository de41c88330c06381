"""The bounded queue in front of whoever receives."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from .outbox import Outbox


class MailboxFull(Exception):
    """The mailbox has no room. `accepted` messages of a tell_many were taken before, in order."""

    def __init__(self, reason: str, accepted: int = 0) -> None:
        super().__init__(reason)
        self.accepted = accepted


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody who waits for room in a mailbox."""

    name: str
    depth: int
    """Messages in its own mailbox, if it is an actor ..."""
    capacity: int
    """... of this capacity."""
    waiting_on: str
    since: float
    """The clock's `now()` when the waiting began."""


class Mailbox:
    """A bounded FIFO with many senders and one consumer.

    Entries are messages, except the marked ones (an ask with its future, a timer's tick), which are
    unwrapped on delivery.

    Under `lock`, always in one piece: the check for closed and for room, the append, and the
    `scheduled` flag. Whoever sets the flag calls `schedule()`, once the lock is free: so the
    consumer is never scheduled twice and no message is left without one.

    Those who wait for room stand in `line`, first come first served, and whoever makes room admits
    them at once: nobody waits while there is room.
    """

    __slots__ = ("capacity", "limit", "line", "lock", "marks", "messages", "name", "outbox", "scheduled")

    def __init__(self, capacity: int, name: str) -> None:
        if capacity < 1:
            raise ValueError(f"capacity of {name}: {capacity}; at least 1")
        self.lock = Lock()
        self.messages: list[object] = []
        self.name = name
        self.capacity = capacity
        self.limit = capacity
        """The capacity while open, 0 once closed: one comparison checks both."""
        self.scheduled = False
        self.marks = 0
        """Marked entries accepted and not yet delivered; while 0, batches need no look inside."""
        self.line: deque[Waiter] | None = None
        self.outbox: Outbox | None = None
        """The consumer's own, while something waits in it: until then it takes nothing from here."""

    @property
    def actor_inbox(self) -> Self:
        """Itself: a mailbox may stand where others have a ref, and takes no ref's memory."""
        return self

    def schedule(self) -> None:
        """Make the consumer run. Called without the lock."""
        raise NotImplementedError

    def offer(self, message: object, mark: int = 0) -> bool:
        """Accept one message; False if full or closed. Nobody overtakes those in line."""
        with self.lock:
            messages = self.messages
            if len(messages) >= self.limit or self.line:
                return False
            messages.append(message)
            self.marks += mark
            if self.scheduled:
                return True
            self.scheduled = True
        self.schedule()
        return True

    def offer_all(self, messages: Sequence[object]) -> bool:
        """Accept all messages; False, and none is taken, if they don't fit or it is closed."""
        with self.lock:
            if len(self.messages) + len(messages) > self.limit:
                return False
            self.messages.extend(messages)
            if self.scheduled or not messages:
                return True
            self.scheduled = True
        self.schedule()
        return True

    def post(self, message: object, mark: int = 0) -> bool:
        """Accept beyond the bound; False if closed.

        Only for what is bounded in itself: one tick a timer, one report a failed actor.
        """
        with self.lock:
            if not self.limit:
                return False
            self.messages.append(message)
            self.marks += mark
            if self.scheduled:
                return True
            self.scheduled = True
        self.schedule()
        return True

    def enter(self, waiter: Waiter) -> bool:
        """Let a waiter in as far as there is room; False if it now stands in line.

        Then its `resume()` is called exactly once, after its last message is in or this is closed.
        """
        with self.lock:
            if not self.limit:
                return True
            done = not self.line and waiter.pour(self)
            if not done:
                waiter.line_up(self)
                if self.line is None:
                    self.line = deque()
                self.line.append(waiter)
            if self.scheduled or not self.messages:
                return done
            self.scheduled = True
        self.schedule()
        return done

    def leave(self, waiter: Waiter) -> bool:
        """Take a waiter out of the line; False if it is no longer there: its `resume()` is called."""
        with self.lock:
            if self.line is None or waiter not in self.line:
                return False
            self.line.remove(waiter)
            waiter.step_out()
            return True

    def waiting(self) -> list[Waiting]:
        """Those in line, first come first."""
        if not self.line:
            return []
        with self.lock:
            return [waiter.waiting(self) for waiter in self.line or ()]

    def take(self, count: int) -> list[Any]:
        """Up to `count` messages in order, for the consumer; their room goes to those in line."""
        with self.lock:
            messages = self.messages
            if len(messages) <= count:
                self.messages = []
            else:
                messages = messages[:count]
                del self.messages[:count]
            admitted = self._admit() if self.line else None
        if admitted:
            for waiter in admitted:
                waiter.resume()
        return messages

    def _admit(self) -> list[Waiter]:
        """Under the lock: let in those in line while there is room; returns those who are done."""
        admitted = []
        while self.line and len(self.messages) < self.limit and self.line[0].pour(self):
            waiter = self.line.popleft()
            waiter.step_out()
            admitted.append(waiter)
        return admitted

    def close(self) -> bool:
        """Accept nothing from now on; what was accepted stays. False if it was closed before."""
        with self.lock:
            if not self.limit:
                return False
            self.limit = 0
            line, self.line = self.line or (), None
            for waiter in line:
                waiter.step_out()
            scheduled, self.scheduled = self.scheduled, True
        for waiter in line:
            waiter.resume()
        if not scheduled:
            self.schedule()
        return True


class Waiter:
    """Somebody in the line of a full mailbox, with the messages still to go in."""

    __slots__ = ("accepted", "entries", "mark", "name", "since")

    def __init__(self, entries: Sequence[object], mark: int, name: str, since: float) -> None:
        self.entries = entries
        self.accepted = 0
        self.mark = mark
        self.name = name
        self.since = since

    def waiting(self, mailbox: Mailbox) -> Waiting:
        return Waiting(self.name, 0, 0, mailbox.name, self.since)

    @property
    def done(self) -> bool:
        return self.accepted == len(self.entries)

    def pour(self, mailbox: Mailbox) -> bool:
        """Under the mailbox's lock: put in what there is room for; True when all is in."""
        room = mailbox.limit - len(mailbox.messages)
        entries = self.entries[self.accepted : self.accepted + room]
        mailbox.messages += entries
        mailbox.marks += self.mark * len(entries)
        self.accepted += len(entries)
        return self.done

    def line_up(self, mailbox: Mailbox) -> None:
        """Under the mailbox's lock: about to stand in its line."""

    def step_out(self) -> None:
        """Under the mailbox's lock: no longer in its line."""

    def resume(self) -> None:
        """Without the lock, once: either all is in or the mailbox is closed."""
        raise NotImplementedError
