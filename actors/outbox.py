"""Messages that an actor has sent and a full mailbox has not yet accepted."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

from .mailbox import Mailbox, Waiter, Waiting

if TYPE_CHECKING:
    from .life import Life

# Guards `waiting_on` of every outbox, so that the graph of who waits on whom can be followed.
# Taken inside a mailbox's lock, never around one.
_graph = Lock()


class DeadlockError(Exception):
    """Actors wait in a circle, each for room in the full mailbox of the next.

    The actor that would have closed the circle fails with this, and what it still had to send is
    dropped: so the others go on.
    """

    def __init__(self, cycle: tuple[Waiting, ...]) -> None:
        steps = ", ".join(
            f"{w.name} ({w.depth}/{w.capacity}) waits on {w.waiting_on} since {w.since:.3f}" for w in cycle
        )
        super().__init__(f"full mailboxes in a circle: {steps}")
        self.cycle = cycle


class Outbox(Waiter):
    """Messages in the order sent, to any number of mailboxes.

    Used by its actor's poll, except from `line_up` to `resume`: then the actor is not polled, and
    the outbox belongs to whoever makes room in the mailbox it waits on.
    """

    __slots__ = ("_owner", "_queue", "waiting_on")

    def __init__(self, owner: Life) -> None:
        super().__init__([], 0, owner.name, 0.0)
        self._owner = owner
        self._queue: deque[tuple[Mailbox, object]] = deque()
        self.waiting_on: Mailbox | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, target: Mailbox, message: object) -> None:
        self._queue.append((target, message))

    def waiting(self, mailbox: Mailbox) -> Waiting:
        owner = self._owner
        return Waiting(owner.name, len(owner.messages), owner.capacity, mailbox.name, self.since)

    def flush(self) -> bool:
        """True once empty. False if the actor now stands in line: don't touch it any more.

        Raises DeadlockError instead of waiting in a circle.
        """
        while self._queue:
            target = self._queue[0][0]
            if not target.enter(self):
                return False
            if not target.limit:
                self._drop(target)
        return True

    def _drop(self, target: Mailbox) -> None:
        """It is closed: what goes to it is counted, not sent."""
        kept = [entry for entry in self._queue if entry[0] is not target]
        self._owner.undelivered += len(self._queue) - len(kept)
        self._queue = deque(kept)

    def clear(self) -> int:
        """Drop everything; returns how many messages that were."""
        dropped = len(self._queue)
        self._queue.clear()
        return dropped

    def pour(self, mailbox: Mailbox) -> bool:
        queue = self._queue
        while queue and queue[0][0] is mailbox:
            if len(mailbox.messages) >= mailbox.limit:
                return False
            mailbox.messages.append(queue.popleft()[1])
        return True

    def line_up(self, mailbox: Mailbox) -> None:
        self.since = self._owner.clock.now()
        with _graph:
            cycle = self._cycle(mailbox)
            if cycle:
                raise DeadlockError(cycle)
            self.waiting_on = mailbox

    def _cycle(self, mailbox: Mailbox) -> tuple[Waiting, ...]:
        """The circle that waiting on the mailbox would close, if any.

        There is none yet and each actor waits on at most one mailbox, so following them comes to an end.
        """
        cycle = [self.waiting(mailbox)]
        while mailbox is not self._owner:
            outbox = mailbox.outbox
            target = None if outbox is None else outbox.waiting_on
            if outbox is None or target is None:
                return ()
            cycle.append(outbox.waiting(target))
            mailbox = target
        return tuple(cycle)

    def step_out(self) -> None:
        with _graph:
            self.waiting_on = None

    def resume(self) -> None:
        self._owner.schedule()
