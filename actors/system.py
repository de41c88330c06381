"""The threads that actors share."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from threading import Lock
from typing import Protocol, Self, TypeVar

import pykka

from .actor import PooledActor
from .clock import Clock, SystemClock
from .future import in_turn, sleep_until_free
from .life import Life
from .mailbox import Waiting
from .process import Process
from .ref import PooledRef
from .statistics import ActorStatistics, SystemStatistics, Totals
from .supervision import Failed, Respawn, Restart
from .workers import Workers

M = TypeVar("M")


class ReadyQueue(Protocol):
    """Processes to poll; None ends a worker."""

    def put(self, process: Process | None, /) -> None: ...


class ActorSystem:
    """Actors, and the `workers` that give them turns: a number of threads of its own, or shared ones.

    A second system with more workers is the place for actors that block in drivers. Also a context
    manager: leaving it stops the system.
    """

    def __init__(
        self, name: str = "actors", *, workers: int | Workers = 2, clock: Clock | None = None
    ) -> None:
        self.name = name
        self.clock: Clock = SystemClock() if clock is None else clock
        self.hurry = False
        """No more deliveries: what is accepted is dropped and counted."""
        self.ready: ReadyQueue
        self._lock = Lock()
        self._processes: dict[str, Process] = {}
        self._numbers = count(1)
        self._gone = Totals()
        """Counts of the actors that have stopped."""
        self._stopping = False
        self._to_stop: list[Process] = []
        self._stopping_now: Process | None = None
        self._empty = Lock()
        """Held while there is an actor to stop; see `stop`."""
        self._threads = 0
        self._own: Workers | None = None
        self._shared: Workers | None = None
        self._start(workers)

    def _start(self, workers: int | Workers) -> None:
        if isinstance(workers, int):
            workers = self._own = Workers(self.name, workers)
        else:
            self._shared = workers
            workers.join(1)
        self.ready, self._threads = workers.ready, workers.count

    @property
    def sharing(self) -> int:
        """Number of systems that share its threads, itself included."""
        return 1 if self._shared is None else self._shared.systems

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.stop()

    def spawn(
        self,
        actor_class: type[PooledActor[M]],
        *args: object,
        capacity: int = 64,
        name: str | None = None,
        supervisor: PooledRef[Failed] | None = None,
        restart: Restart | None = None,
        **kwargs: object,
    ) -> PooledRef[M]:
        """Create `actor_class(*args, **kwargs)` and start it.

        `capacity` is its mailbox's bound in messages. `supervisor` gets `Failed` when it fails; with
        `restart` it is created again from the same arguments and keeps its ref and mailbox.
        Raises ValueError if the name is taken, RuntimeError if the system is stopped.
        """
        if name is None:
            name = f"{actor_class.__name__}-{next(self._numbers)}"
        by_batch = actor_class.on_receive_batch is not PooledActor.on_receive_batch
        process = Process(self, name, capacity, by_batch, actor_class.takes_all)
        ref = PooledRef(process, actor_class)
        process.ref = ref
        process.supervisor = supervisor

        def make() -> None:
            actor = actor_class.__new__(actor_class)
            actor._process = process
            actor_class.__init__(actor, *args, **kwargs)
            process.actor = actor

        if restart is not None:
            process.respawn = Respawn(restart, make)
        with self._lock:
            if self._stopping:
                raise RuntimeError(f"the system {self.name} is stopped")
            if name in self._processes:
                raise ValueError(f"an actor named {name!r} exists in the system {self.name}")
            self._processes[name] = process
        try:
            make()
        except BaseException:
            process.never_start()
            raise
        process.schedule()
        return ref

    def statistics(self) -> SystemStatistics:
        """Return the statistics of every actor, about 5 µs each, without stopping any."""
        with self._lock:
            processes = list(self._processes.values())
            totals = replace(self._gone)
        for process in processes:
            totals.add(process)
        return SystemStatistics(
            name=self.name,
            workers=self._threads,
            actors=tuple(ActorStatistics.of(process) for process in processes),
            waiting=tuple(entry for process in processes for entry in process.waiting()),
            totals=totals,
        )

    def waiting(self) -> list[Waiting]:
        """Return the `waiting` part of `statistics`, at 0.1 µs per actor."""
        with self._lock:
            processes = list(self._processes.values())
        return [entry for process in processes if process.line for entry in process.waiting()]

    def wait(self, lock: Lock, timeout: float | None) -> bool:
        """Block this thread until the lock is free; False after `timeout` seconds."""
        return sleep_until_free(lock, timeout)

    # --- stopping --------------------------------------------------------------------------------

    def stop(self, timeout: float | None = None) -> None:
        """Stop the actors one after the other, the last spawned first, then the workers.

        Each delivers what its mailbox accepted and has its `on_stop` called once, so a pipeline that
        was spawned from its end to its start drains whole. After `timeout` seconds what is left is
        dropped and counted. Raises pykka.Timeout if an actor's own code doesn't return for as long.
        """
        if in_turn():
            raise RuntimeError(f"stop of the system {self.name} in an actor's turn would wait for itself")
        with self._lock:
            first = not self._stopping
            if first:
                self._stopping = True
                self._to_stop = list(self._processes.values())
                if self._to_stop:
                    self._empty.acquire()
        if first:
            if self._shared is not None:
                self._shared.join(-1)
            self._stop_next()
        if not self._drained(timeout):
            self.hurry = True
            with self._lock:
                left = list(self._processes.values())
            for process in left:
                process.abandon()
            if not self._drained(timeout):
                with self._lock:
                    busy = ", ".join(self._processes)
                raise pykka.Timeout(f"in the system {self.name} still busy: {busy}")
        if self._own is not None:
            self._own.close()

    def _drained(self, timeout: float | None) -> bool:
        if not self.wait(self._empty, timeout):
            return False
        self._empty.release()
        return True

    def _stop_next(self) -> None:
        """Stop the youngest actor that was spawned before the stop and still runs."""
        process = None
        with self._lock:
            while process is None and self._to_stop:
                process = self._processes.get(self._to_stop.pop().name)
            self._stopping_now = process
        if process is not None:
            process.stop()

    def forget(self, process: Life) -> None:
        """Remove an actor that has stopped."""
        with self._lock:
            del self._processes[process.name]
            self._gone.add(process)
            if self._stopping and not self._processes:
                self._empty.release()
        if process is self._stopping_now:
            self._stop_next()
