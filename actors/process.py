"""The turns of an actor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .future import Ask
from .life import Life, State
from .mailbox import Mailbox
from .outbox import DeadlockError, Outbox
from .supervision import Failed
from .timer import Timer

if TYPE_CHECKING:
    from .system import ActorSystem

MAX_BATCH = 64
SLICE_SECONDS = 0.005
NOTHING = object()
RUNNING = State.RUNNING


class Process(Life):
    """A mailbox with an actor behind it that a worker polls.

    While `scheduled` is set the process is in exactly one place: in the ready queue, in a worker's
    `poll`, in the line of a full mailbox (its outbox) or with the clock (a pause). Whoever takes it
    out of there owns it, so everything but the mailbox needs no lock.
    """

    __slots__ = ("by_batch", "chunk", "polls", "takes_all")

    def __init__(
        self, system: ActorSystem, name: str, capacity: int, by_batch: bool, takes_all: bool = False
    ) -> None:
        super().__init__(system, name, capacity)
        self.by_batch = by_batch
        self.takes_all = takes_all
        self.chunk = 1 if by_batch and not takes_all else MAX_BATCH
        """How many messages a turn takes; for batches as many as recently fitted into a slice."""
        self.polls = 0

    def schedule(self) -> None:
        self.system.ready.put(self)

    def send(self, target: Mailbox, message: object) -> None:
        """Called by the actor, in its turn."""
        if self.outbox is None:
            if target.offer(message):
                return
            self.outbox = Outbox(self)
        self.outbox.add(target, message)

    def claim(self) -> bool:
        """Own the process as a worker does, if it rests with nothing to do; until `release` its actor may be
        called. For what comes to so many actors at once that messages would cost more than the work."""
        with self.lock:
            if self.scheduled or not self.limit:
                return False
            self.scheduled = True
            return True

    def release(self) -> None:
        """After `claim`."""
        with self.lock:
            if self.limit and not self.messages and self.outbox is None:
                self.scheduled = False
                return
        self.system.ready.put(self)

    def poll(self) -> None:
        """Take a turn. Called by whoever took the process out of the ready queue."""
        self.polls += 1
        if self.outbox is not None and not self._flush():
            return
        self.turn_since = now = self.system.clock.now()
        if self.state is RUNNING:
            self._work(now)
        elif not self.proceed():
            return
        self.turn_since = None
        if self.outbox is not None and not self._flush():
            return
        with self.lock:
            if self.state is RUNNING and self.limit and not self.messages and not self.hand:
                self.scheduled = False
                return
        self.system.ready.put(self)

    def _flush(self) -> bool:
        """False if the outbox stands in line: another thread may own the process already."""
        outbox = self.outbox
        assert outbox is not None
        if self.system.hurry:
            self.undelivered += outbox.clear()
        try:
            if not outbox.flush():
                if self.system.hurry:
                    self.step_out_of_line()
                return False
        except DeadlockError as error:
            self.outbox = None
            self.undelivered += outbox.clear()
            if self.state in (RUNNING, State.STARTING):
                self.fail(None, error)
            else:
                pause = self.pause_seconds if self.state is State.FAILED else None
                self.report(Failed(self.ref, self.name, None, error, pause))
        else:
            self.outbox = None
        return True

    def _work(self, started: float) -> None:
        """Deliver messages for about a slice, as long as nothing waits in the outbox."""
        if self.system.hurry:
            self.drop_messages()
        hand = self.hand
        if not hand:
            closed = not self.limit  # looked at first: nothing can come between this and an empty take
            hand = self.take(self.chunk)
            self.taken += len(hand)
            if not hand:
                if closed:
                    self.retire()
                return
        if self.by_batch:
            self._deliver_batch(hand, started)
        else:
            self._deliver_each(hand, started + SLICE_SECONDS)

    def _deliver_each(self, hand: list[object], deadline: float) -> None:
        self.hand = hand
        receive = self.actor.on_receive
        marked = self.marks > 0
        now = self.system.clock.now
        left = iter(hand)
        message: object = None
        try:
            for message in left:
                if not marked or (message := self._open(message)) is not NOTHING:
                    receive(message)
                if self.outbox is not None or now() >= deadline:
                    break
        except BaseException as error:  # a worker outlives whatever an actor raises
            self.fail(message, error)
        self.hand = list(left)

    def _deliver_batch(self, hand: list[object], started: float) -> None:
        batch = hand
        self.hand = None
        size = 0
        try:
            if self.marks:
                self.hand = hand
                batch = self._next_batch(hand)
            size = len(batch)
            if size:
                self.actor.on_receive_batch(batch)
        except BaseException as error:
            self.fail(batch, error)
        if self.takes_all:
            return
        seconds = self.clock.now() - started
        if seconds > SLICE_SECONDS:
            self.chunk = max(1, size // 2)
        elif seconds * 4 < SLICE_SECONDS and size >= self.chunk:
            self.chunk = min(MAX_BATCH, self.chunk * 2)

    def _next_batch(self, hand: list[object]) -> list[object]:
        """Answer the asks in front, then remove and return the messages up to the next one."""
        batch: list[object] = []
        while hand and self.outbox is None and not (batch and isinstance(hand[0], Ask)):
            message = self._open(hand.pop(0))
            if message is not NOTHING:
                batch.append(message)
        return batch

    def _open(self, entry: object) -> object:
        """The message to deliver, or NOTHING: an ask is answered here, a cancelled tick forgotten."""
        if not isinstance(entry, (Ask, Timer)):
            return entry
        with self.lock:
            self.marks -= 1
        if isinstance(entry, Timer):
            return entry.message if entry.take() else NOTHING
        try:
            answer = self.actor._handle_receive(entry.message)
        except BaseException as error:
            entry.fail(error)
        else:
            entry.answer(answer)
        return NOTHING
