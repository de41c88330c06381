"""The life cycle of an actor: started, running, failed, restarted, stopped."""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING, Any

import pykka

from .future import Ask, PooledFuture
from .mailbox import Mailbox
from .supervision import Failed, Respawn
from .timer import Timer

if TYPE_CHECKING:
    from .actor import PooledActor
    from .clock import Clock
    from .ref import PooledRef
    from .system import ActorSystem

log = logging.getLogger("tidemill.actors")


class State(enum.Enum):
    STARTING = "starting"  # on_start comes next
    RUNNING = "running"  # takes messages; once closed, until none is left, then on_stop
    LEAVING = "leaving"  # on_stop or on_failure has run; its last output is on the way
    FAILED = "failed"  # on_failure has run; its last output is on the way, then it pauses
    PAUSING = "pausing"  # an alarm will start it again
    STOPPED = "stopped"


STARTING, RUNNING, LEAVING, FAILED, PAUSING, STOPPED = State


class Life(Mailbox):
    """A mailbox with an actor behind it, and the state it is in."""

    __slots__ = (
        "actor", "dropped", "failures", "hand", "pause_seconds", "ref", "respawn", "state",
        "stop_futures", "supervisor", "system", "taken", "timers", "turn_since", "undelivered",
    )  # fmt: skip

    actor: PooledActor[Any]
    ref: PooledRef[Any]

    def __init__(self, system: ActorSystem, name: str, capacity: int) -> None:
        super().__init__(capacity, name)
        self.scheduled = True
        self.system = system
        self.supervisor: PooledRef[Failed] | None = None
        self.respawn: Respawn | None = None
        self.state = STARTING
        self.hand: list[object] | None = None
        """Taken from the mailbox and not yet delivered, in order."""
        self.timers: set[Timer] | None = None
        self.stop_futures: list[PooledFuture[bool]] | None = None
        self.pause_seconds = 0.0
        self.turn_since: float | None = None
        """When the actor's code began to run; None while it doesn't."""
        self.taken = 0
        self.failures = 0
        self.dropped = 0
        """Accepted, and left when the actor stopped."""
        self.undelivered = 0
        """Sent by the actor, and not taken: the target had stopped, or it was a deadlock."""

    @property
    def clock(self) -> Clock:
        return self.system.clock

    def add_timer(self, seconds: float, message: object, *, periodic: bool) -> Timer:
        """Called by the actor, in its turn."""
        if self.timers is None:
            self.timers = set()
        timer = Timer(self, seconds, message, periodic=periodic)
        self.timers.add(timer)
        return timer

    # --- from state to state ---------------------------------------------------------------------

    def proceed(self) -> bool:
        """One step in any state but RUNNING; False if the process has left this thread's hands."""
        if self.state is STARTING:
            try:
                self.actor.on_start()
            except BaseException as error:
                self.fail(None, error)
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

    def retire(self) -> None:
        """Closed and drained."""
        self.state = LEAVING
        self._cancel_timers()
        try:
            self.actor.on_stop()
        except BaseException as error:
            self.failures += 1
            self.report(Failed(self.ref, self.name, None, error))

    def fail(self, message: object, error: BaseException) -> None:
        """The actor's code raised `error` while handling `message`."""
        try:
            self.actor.on_failure(type(error), error, error.__traceback__)
        except BaseException:
            log.exception("%s: on_failure raised", self.name)
        self._restart_or_leave(message, error)

    def _restart_or_leave(self, message: object, error: BaseException) -> None:
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
        self.report(Failed(self.ref, self.name, message, error, pause))

    def report(self, failed: Failed) -> None:
        supervisor = self.supervisor
        if supervisor is None or not supervisor.post(failed):
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
        self.drop_messages()
        with self.lock:
            self.state = STOPPED
            futures, self.stop_futures = self.stop_futures, None
        self.system.forget(self)
        for future in futures or ():
            future.set(True)

    def drop_messages(self) -> None:
        """Take what is left and count it instead of delivering it; asks are answered."""
        left = self.hand or []
        self.hand = None
        while batch := self.take(self.capacity):
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
        self.step_out_of_line()

    def step_out_of_line(self) -> None:
        """If the outbox stands in line, don't wait for its turn there."""
        outbox = self.outbox
        target = None if outbox is None else outbox.waiting_on
        if outbox is not None and target is not None and target.leave(outbox):
            self.schedule()
