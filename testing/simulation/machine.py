"""A simulated machine, on which a feed's threads, actors and loops run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import Empty
from random import Random
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...actors import ActorSystem, Clock, Workers
from ...actors.process import MAX_BATCH, Process
from .scheduler import Fiber, Host, Scheduler

if TYPE_CHECKING:
    from .loop import VirtualLoop


class Signal:
    """An event on which fibers wait."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        return self._scheduler.wait(self.is_set, timeout)


class FiberLock:
    """A lock that a fiber may hold while it waits."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_free = True

    def __enter__(self) -> None:
        self._scheduler.wait(lambda: self._is_free)
        self._is_free = False

    def __exit__(self, *_: object) -> None:
        self._is_free = True


class Thread:
    """A fiber as a runtime returns it."""

    def __init__(self, scheduler: Scheduler, fiber: Fiber) -> None:
        self._scheduler = scheduler
        self._fiber = fiber

    def join(self, timeout: float | None = None) -> None:
        self._scheduler.wait(lambda: self._fiber.is_over, timeout)


class FiberQueue:
    """A queue between fibers."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._items: deque[Any] = deque()

    def put(self, item: Any, /) -> None:
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None, /) -> Any:
        if block:
            self._scheduler.wait(lambda: bool(self._items), timeout)
        if not self._items:
            raise Empty
        return self._items.popleft()


class Machine(Host):
    """A host with the runtime of a feed."""

    def __init__(self, name: str, scheduler: Scheduler) -> None:
        super().__init__(name)
        self.scheduler = scheduler
        self.clock: Clock = scheduler.clock
        self.loops: list[VirtualLoop] = []
        """Event loops of its clients."""

    def buried(self) -> None:
        for loop in self.loops:
            loop.dispose()

    def signal(self) -> Signal:
        return Signal(self.scheduler)

    def lock(self) -> FiberLock:
        return FiberLock(self.scheduler)

    def queue(self) -> FiberQueue:
        return FiberQueue(self.scheduler)

    def start(self, name: str, work: Callable[[], object]) -> Thread:
        return Thread(self.scheduler, self.scheduler.start(self, name, work))

    def system(self, name: str, workers: int | Workers) -> ActorSystem:
        if isinstance(workers, Workers):
            raise TypeError("a simulated machine has no shared workers")
        return SimulatedSystem(name, workers, self)


class SimulatedSystem(ActorSystem):
    """An actor system whose workers are fibers: at most `workers` of them at once, each an actor's turn."""

    def __init__(self, name: str, workers: int, machine: Machine) -> None:
        self.machine = machine
        self.random: Random = machine.scheduler.random
        super().__init__(name, workers=workers, clock=machine.clock)

    def _start(self, workers: int | Workers) -> None:
        assert isinstance(workers, int)
        self._threads = workers
        self.ready = _Ready(self, workers)

    def wait(self, lock: Lock, timeout: float | None) -> bool:
        return self.machine.scheduler.acquire(lock, timeout)


class _Ready:
    """The queue of a system's actors that are ready, in front of its workers."""

    def __init__(self, system: SimulatedSystem, workers: int) -> None:
        self.machine = system.machine
        self._random = system.random
        self.idle = [_Worker(system, number) for number in range(workers)]

    def put(self, process: Process | None, /) -> None:
        if process is not None and not self.machine.is_dead:
            self.machine.scheduler.ready(_Turn(self, process, self._random))


class _Turn:
    """An actor that is ready for a turn."""

    __slots__ = ("_process", "_random", "_ready", "host", "name")

    def __init__(self, ready: _Ready, process: Process, random: Random) -> None:
        self.name = process.name
        self.host = ready.machine
        self._ready = ready
        self._process = process
        self._random = random

    @property
    def is_ready(self) -> bool:
        return bool(self._ready.idle)

    def turn(self) -> None:
        if not self._process.takes_all:
            self._process.chunk = self._random.randint(1, MAX_BATCH)
        worker = self._ready.idle.pop()
        worker.run(self._process, self._ready)


class _Worker:
    """A fiber that gives actors turns; it may wait in one, as for an answer of a driver."""

    def __init__(self, system: SimulatedSystem, number: int) -> None:
        self._machine = system.machine
        self._name = f"{system.name}-{number}"
        self._process: Process | None = None
        self._ready: _Ready | None = None
        self._fiber: Fiber | None = None

    def run(self, process: Process, ready: _Ready) -> None:
        self._process, self._ready = process, ready
        scheduler = self._machine.scheduler
        if self._fiber is None:
            self._fiber = Fiber(scheduler, self._machine, self._name, self._work, in_turn=True)
        self._fiber.turn()
        if self._process is not None and not self._fiber.is_over:
            scheduler.watch(self._fiber)

    def _work(self) -> None:
        while True:
            assert self._process is not None
            assert self._ready is not None
            assert self._fiber is not None
            self._process.poll()
            self._process = None
            self._ready.idle.append(self)
            self._fiber.pause()
