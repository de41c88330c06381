"""The seeded scheduler: one thread, virtual time, and fibers in place of threads."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from math import inf
from random import Random
from threading import Lock
from typing import Final, Protocol

from greenlet import getcurrent, greenlet

from ...actors import ManualClock
from ...actors.future import enter_turns

BUSY_PART: Final = 0.03
"""Part of the steps before which time passes though something could run: so timers fall between steps."""
BUSY_SECONDS: Final = 0.004
SLOW_PART: Final = 0.9
"""Part of the draws of something slow that give the turn to another one."""
EPOCH: Final = 1_700_000_000
"""Unix time at which virtual time begins."""


class Stuck(Exception):
    """Everything waits, and nothing is due."""


class Killed(BaseException):
    """Ends a fiber whose machine was killed; not an Exception, so that no handler takes it for an error."""


class Runnable(Protocol):
    """Something that the scheduler gives turns."""

    name: str

    @property
    def host(self) -> Host: ...

    @property
    def is_ready(self) -> bool: ...

    def turn(self) -> None:
        """Run for a while, in the scheduler's own greenlet."""


class Host:
    """A machine of the world, or a part of it that never fails. Its fibers die with it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.fibers: list[Fiber] = []

    def killed(self) -> None:
        """Called at a kill, before its fibers are unwound."""

    def buried(self) -> None:
        """Called once all fibers have ended after a kill."""


class Fiber:
    """A thread of a host. It runs until it waits; `work` begins at the first turn."""

    __slots__ = ("_deadline", "_greenlet", "_scheduler", "_until", "host", "in_turn", "is_over", "name")

    def __init__(
        self,
        scheduler: Scheduler,
        host: Host,
        name: str,
        work: Callable[[], object],
        *,
        in_turn: bool = False,
    ) -> None:
        self.name = name
        self.host = host
        self.is_over = False
        self.in_turn = in_turn
        self._scheduler = scheduler
        self._until: Callable[[], bool] | None = None
        self._deadline = 0.0
        self._greenlet = greenlet(lambda: self._run(work), scheduler.hub)
        host.fibers.append(self)
        scheduler.by_greenlet[self._greenlet] = self

    @property
    def is_ready(self) -> bool:
        until = self._until
        return self._scheduler.clock.now() >= self._deadline or (until is not None and until())

    def turn(self) -> None:
        enter_turns(self.in_turn)
        try:
            self._greenlet.switch()
        finally:
            enter_turns(False)
        if self.is_over:
            self._scheduler.leave(self)

    def pause(self, until: Callable[[], bool] | None = None, deadline: float = inf) -> None:
        """Let others run until the condition holds or it is `deadline`; called in the fiber. Raises Killed if
        its host is dead."""
        if self.host.is_dead:
            raise Killed
        self._until, self._deadline = until, deadline
        self._scheduler.hub.switch()
        if self.host.is_dead:
            raise Killed

    def end(self) -> None:
        """Unwind a fiber of a dead host, without letting it do anything more outside."""
        while not self._greenlet.dead and self._greenlet:
            self._greenlet.throw(Killed)
        self.is_over = True
        self._scheduler.leave(self)

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Killed:
            if not self.host.is_dead:
                raise
        except BaseException as error:
            if not self.host.is_dead:
                self._scheduler.failed(self, error)
        finally:
            self.is_over = True


class Scheduler:
    """Gives one of those that are ready a turn at each step, drawn by the seed; if none is, time jumps."""

    def __init__(self, seed: str, slow: str = "") -> None:
        """A runnable with `slow` in its name gets few turns."""
        self.random = Random(seed)
        self.clock = ManualClock(epoch=EPOCH)
        self._slow = slow
        self.hub = getcurrent()
        self.by_greenlet: dict[greenlet, Fiber] = {}
        self.steps = 0
        self.errors: list[tuple[str, BaseException]] = []
        """Errors that ended fibers."""
        self._others: list[Runnable] = []
        self._fibers: list[Fiber] = []
        self._queue: list[Runnable] = []
        self._dying: list[Host] = []
        self._numbers: dict[str, int] = {}
        """By the names of those that ran: numbers in names may be those of the process."""
        self._digest = blake2b(digest_size=8)

    @property
    def digest(self) -> str:
        """A hash of all steps so far: who ran, and when."""
        return self._digest.hexdigest()

    @property
    def fiber(self) -> Fiber | None:
        """The fiber that runs now; None in the scheduler itself."""
        return self.by_greenlet.get(getcurrent())

    def start(self, host: Host, name: str, work: Callable[[], object]) -> Fiber:
        fiber = Fiber(self, host, name, work)
        self.watch(fiber)
        return fiber

    def watch(self, fiber: Fiber) -> None:
        """Look at a fiber at each step, as it waits for something."""
        if fiber not in self._fibers:
            self._fibers.append(fiber)

    def add(self, runnable: Runnable) -> None:
        """Look at a source of work at each step, such as an event loop."""
        self._others.append(runnable)

    def remove(self, runnable: Runnable) -> None:
        if runnable in self._others:
            self._others.remove(runnable)

    def ready(self, runnable: Runnable) -> None:
        """Give one turn to something that is ready once."""
        self._queue.append(runnable)

    def leave(self, fiber: Fiber) -> None:
        self.by_greenlet.pop(fiber._greenlet, None)
        if fiber in self._fibers:
            self._fibers.remove(fiber)
        if fiber in fiber.host.fibers:
            fiber.host.fibers.remove(fiber)

    def failed(self, fiber: Fiber, error: BaseException) -> None:
        self.errors.append((fiber.name, error))

    # --- waiting, in a fiber ---------------------------------------------------------------------

    def wait(self, until: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait for a condition, up to `timeout` seconds; True if it holds."""
        if until():
            return True
        fiber = self.fiber
        if fiber is None:
            raise RuntimeError("only a fiber can wait")
        if timeout is None:
            fiber.pause(until)
            return True
        self._pause(fiber, until, timeout)
        return until()

    def _pause(self, fiber: Fiber, until: Callable[[], bool] | None, seconds: float) -> None:
        end = self.clock.now() + max(0.0, seconds)
        alarm = self.clock.call_at(end, _nothing)
        try:
            fiber.pause(until, end)
        finally:
            alarm.cancel()

    def acquire(self, lock: Lock, timeout: float | None) -> bool:
        """Wait until a lock is free, and take it."""
        return self.wait(lambda: not lock.locked(), timeout) and lock.acquire(blocking=False)

    def sleep(self, seconds: float) -> None:
        fiber = self.fiber
        assert fiber is not None, "only a fiber can sleep"
        self._pause(fiber, None, seconds)

    # --- steps, in the hub -----------------------------------------------------------------------

    def run(self, until: Callable[[], bool], seconds: float) -> bool:
        """Run until the condition holds, for up to `seconds` of virtual time; True if it holds."""
        end = self.clock.now() + seconds
        while not until():
            if self.clock.now() >= end:
                return False
            if not self._step() and not self.clock.jump(end):
                self.clock.advance(end - self.clock.now())
        return True

    def _step(self) -> bool:
        draw = self.random.random
        if draw() < BUSY_PART:
            self.clock.advance(draw() * BUSY_SECONDS)
        queue = self._queue
        others = [one for one in self._others if one.is_ready]
        others += [one for one in self._fibers if one.is_ready]
        queued = [index for index, one in enumerate(queue) if one.is_ready]
        choices = len(others) + len(queued)
        if not choices:
            return False
        drawn = int(draw() * choices)
        if (slow := self._slow) and choices > 1:
            one = others[drawn] if drawn < len(others) else queue[queued[drawn - len(others)]]
            if slow in one.name and draw() < SLOW_PART:
                drawn = int(draw() * choices)
        one = others[drawn] if drawn < len(others) else queue.pop(queued[drawn - len(others)])
        self.steps += 1
        number = self._numbers.setdefault(one.name, len(self._numbers))
        self._digest.update(b"%d %d\n" % (number, self.clock.now() * 1e6))
        one.turn()
        while self._dying:
            self._bury(self._dying[0])
        return True

    # --- kills -----------------------------------------------------------------------------------

    def die(self, host: Host) -> None:
        """Kill a host, maybe that of the fiber that runs; called in a fiber."""
        host.is_dead = True
        self._dying.append(host)
        fiber = self.fiber
        assert fiber is not None
        if fiber.host is host:
            self.hub.switch()
            raise Killed
        fiber.pause(lambda: host not in self._dying)

    def _bury(self, host: Host) -> None:
        """End the fibers of a dead host; what they do while they are unwound goes nowhere."""
        host.killed()
        for fiber in list(host.fibers):
            fiber.end()
        self._queue = [one for one in self._queue if one.host is not host]
        host.buried()
        self._dying.remove(host)


def _nothing() -> None:
    """The call of an alarm that only lets time come to it."""
