"""One actor's life: its mailbox, its turns and what becomes of it."""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING, Any

import pykka

from .future import Ask, PooledFuture
from .mailbox import Mailbox
from .outbox import DeadlockError, Outbox
from .supervision import Failed, Respawn
from .timer import Timer

if TYPE_CHECKING:
    from .actor import PooledActor
    from .clock import Clock
    from .ref import PooledRef
    from .system import ActorSystem

log = logging.getLogger("tidemill.actors")

MAX_BATCH = 64
SLICE_SECONDS = 0.005
NOTHING = object()


class State(enum.Enum):
    STARTING = "starting"  # on_start comes next
    RUNNING = "running"  # takes messages; once closed, until none is left, then on_stop
    LEAVING = "leaving"  # on_stop or on_failure has run; its last output is on the way
    FAILED = "failed"  # on_failure has run; its last output is on the way, then it pauses
    PAUSING = "pausing"  # an alarm will start it again
    STOPPED = "stopped"


STARTING, RUNNING, LEAVING, FAILED, PAUSING, STOPPED = State


class Process(Mailbox):
    """A mailbox with an actor behind it.

    While `scheduled` is set the process is in exactly one place: in the ready queue, in a worker's
    `poll`, in the line of a full mailbox (its outbox) or with the clock (a pause). Whoever takes it
    out of there owns it, so everything but the mailbox needs no lock.
    """

    __slots__ = (
        "actor", "by_batch", "chunk", "dropped", "failures", "hand", "pause_seconds", "polls", "ref",
        "respawn", "state", "stop_futures", "supervisor", "system", "taken", "timers", "turn_since",
        "undelivered",
    )  # fmt: skip

    actor: PooledActor
    ref: PooledRef[Any]

    def __init__(self, system: ActorSystem, name: str, capacity: int, by_batch: bool) -> None:
        super().__init__(capacity, name)
        self.scheduled = True
        self.system = system
        self.by_batch = by_batch
        self.supervisor: PooledRef[Any] | None = None
        self.respawn: Respawn | None = None
        self.state = STARTING
        self.hand: list[Any] | None = None
        """Taken from the mailbox and not yet delivered, in order."""
        self.chunk = 1 if by_batch else MAX_BATCH
        """How many messages a turn takes; for batches as many as recently fitted into a slice."""
        self.timers: set[Timer] | None = None
        self.stop_futures: list[PooledFuture[bool]] | None = None
        self.pause_seconds = 0.0
        self.turn_since: float | None = None
        """When the actor's code began to run; None while it doesn't."""
        self.taken = 0
        self.polls = 0
        self.failures = 0
        self.dropped = 0
        """Accepted, and left when the actor stopped."""
        self.undelivered = 0
        """Sent by the actor, and not taken: the target had stopped, or it was a deadlock."""

    @property
    def clock(self) -> Clock:
        return self.system.clock

    def schedule(self) -> None:
        self.system.ready.put(self)

    def send(self, target: Mailbox, message: Any) -> None:
        """Called by the actor, in its turn."""
        if self.outbox is None:
            if target.offer(message):
                return
            self.outbox = Outbox(self)
        self.outbox.add(target, message)

    def add_timer(self, seconds: float, message: Any, *, periodic: bool) -> Timer:
        """Called by the actor, in its turn."""
        if self.timers is None:
            self.timers = set()
        timer = Timer(self, seconds, message, periodic=periodic)
        self.timers.add(timer)
        return timer

    # --- a turn ----------------------------------------------------------------------------------

    def poll(self) -> None:
        """Take a turn. Called by whoever took the process out of the ready queue."""
        self.polls += 1
        if self.outbox is not None and not self._flush():
            return
        self.turn_since = now = self.system.clock.now()
        if self.state is RUNNING:
            self._work(now)
        elif not self._proceed():
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
                    self._step_out_of_line()
                return False
        except DeadlockError as error:
            self.outbox = None
            self.undelivered += outbox.clear()
            if self.state is RUNNING or self.state is STARTING:
                self._fail(None, error)
            else:
                pause = self.pause_seconds if self.state is FAILED else None
                self._report(Failed(self.ref, self.name, None, error, pause))
        else:
            self.outbox = None
        return True

    def _work(self, started: float) -> None:
        """Deliver messages for about a slice, as long as nothing waits in the outbox."""
        if self.system.hurry:
            self._drop_messages()
        hand = self.hand
        if not hand:
            closed = not self.limit  # looked at first: nothing can come between this and an empty take
            hand = self.take(self.chunk)
            self.taken += len(hand)
            if not hand:
                if closed:
                    self._leave()
                return
        if self.by_batch:
            self._deliver_batch(hand, started)
        else:
            self._deliver_each(hand, started + SLICE_SECONDS)

    def _deliver_each(self, hand: list[Any], deadline: float) -> None:
        self.hand = hand
        receive = self.actor.on_receive
        marked = self.marks > 0
        now = self.system.clock.now
        left = iter(hand)
        message: Any = None
        try:
            for message in left:
                if not marked or (message := self._open(message)) is not NOTHING:
                    receive(message)
                if self.outbox is not None or now() >= deadline:
                    break
        except BaseException as error:  # a worker outlives whatever an actor raises
            self._fail(message, error)
        self.hand = list(left)

    def _deliver_batch(self, hand: list[Any], started: float) -> None:
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
            self._fail(batch, error)
        seconds = self.clock.now() - started
        if seconds > SLICE_SECONDS:
            self.chunk = max(1, size // 2)
        elif seconds * 4 < SLICE_SECONDS and size >= self.chunk:
            self.chunk = min(MAX_BATCH, self.chunk * 2)

    def _next_batch(self, hand: list[Any]) -> list[Any]:
        """Answer the asks in front, then remove and return the messages up to the next one."""
        batch: list[Any] = []
        while hand and self.outbox is None and not (batch and isinstance(hand[0], Ask)):
            message = self._open(hand.pop(0))
            if message is not NOTHING:
                batch.append(message)
        return batch

    def _open(self, entry: Any) -> Any:
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

    # --- from state to state ---------------------------------------------------------------------

    def _proceed(self) -> bool:
        """One step in any state but RUNNING; False if the process has left this thread's hands."""
        if self.state is STARTING:
            try:
                self.actor.on_start()
            except BaseException as error:
                self._fail(None, error)
            else:
                self.state = RUNNING
            return True
        if self.state is FAILED:
            return not self._pause()
        if self.state is PAUSING and self.limit:
            self._start_again()
            return True
        self._finish()
        return False

    def _leave(self) -> None:
        """Closed and drained."""
        self.state = LEAVING
        self._cancel_timers()
        try:
            self.actor.on_stop()
        except BaseException as error:
            self.failures += 1
            self._report(Failed(self.ref, self.name, None, error))

    def _fail(self, message: Any, error: BaseException) -> None:
        try:
            self.actor.on_failure(type(error), error, error.__traceback__)
        except BaseException:
            log.exception("%s: on_failure raised", self.name)
        self._restart_or_leave(message, error)

    def _restart_or_leave(self, message: Any, error: BaseException) -> None:
        self.failures += 1
        self._cancel_timers()
        pause = None
        if self.respawn is not None and self.limit:
            pause = self.respawn.pause(error, self.clock.now())
        if pause is None:
            self.state = LEAVING
            self.close()
        else:
            self.state = FAILED
            self.pause_seconds = pause
        self._report(Failed(self.ref, self.name, message, error, pause))

    def _report(self, failed: Failed) -> None:
        supervisor = self.supervisor
        if supervisor is None or not supervisor.actor_inbox.post(failed):
            log.error("%s failed and has no supervisor", self.name, exc_info=failed.error)

    def _pause(self) -> bool:
        """Hand the process to the clock; False if it was closed meanwhile."""
        assert self.respawn is not None
        self.state = PAUSING
        self.turn_since = None
        with self.lock:
            if self.limit:
                when = self.clock.now() + self.pause_seconds
                self.respawn.alarm = self.clock.call_at(when, self.schedule)
                return True
        return False

    def _start_again(self) -> None:
        assert self.respawn is not None
        self.state = STARTING
        try:
            self.respawn.make()
        except BaseException as error:
            self._restart_or_leave(None, error)

    def _finish(self) -> None:
        self.turn_since = None
        self._drop_messages()
        with self.lock:
            self.state = STOPPED
            futures, self.stop_futures = self.stop_futures, None
        self.system.forget(self)
        for future in futures or ():
            future.set(True)

    def _drop_messages(self) -> None:
        left = self.hand or []
        self.hand = None
        while batch := self.take(MAX_BATCH):
            self.taken += len(batch)
            left += batch
        for entry in left:
            if isinstance(entry, Ask):
                entry.fail(pykka.ActorDeadError(f"{self.name} stopped before handling the message"))
            self.dropped += 1

    def _cancel_timers(self) -> None:
        for timer in list(self.timers or ()):
            timer.cancel()

    # --- from any thread -------------------------------------------------------------------------

    def stop(self, future: PooledFuture[bool] | None = None) -> None:
        """Accept nothing more, deliver what was accepted, stop, and answer; False if stopped before."""
        with self.lock:
            stopped = self.state is STOPPED
            if future is not None and not stopped:
                self.stop_futures = [*(self.stop_futures or ()), future]
        if stopped:
            if future is not None:
                future.set(False)
            return
        self.close()
        if self.respawn is not None and self.respawn.alarm is not None and self.respawn.alarm.cancel():
            self.schedule()

    def never_start(self) -> None:
        """The constructor raised."""
        self.close()
        self._cancel_timers()
        self._finish()

    def abandon(self) -> None:
        """Stop without delivering: `system.hurry` is set."""
        self.stop()
        self._step_out_of_line()

    def _step_out_of_line(self) -> None:
        outbox = self.outbox
        target = None if outbox is None else outbox.waiting_on
        if outbox is not None and target is not None and target.leave(outbox):
            self.schedule()
