"""Threads, waits and actor systems of a feed, as an argument."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Protocol, TypeVar

from .clock import Clock, SystemClock
from .system import ActorSystem
from .workers import Workers

T = TypeVar("T")


class Signal(Protocol):
    """The part of `threading.Event` that is used."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Joinable(Protocol):
    """A thread that has been started."""

    def join(self, timeout: float | None = None) -> None: ...


class Queue(Protocol[T]):
    """The part of `queue.SimpleQueue` that is used."""

    def put(self, item: T, /) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None, /) -> T:
        """Raises queue.Empty if there is nothing, after `timeout` seconds if it waits."""
        ...


class Runtime(Protocol):
    """Makes whatever runs, waits or tells the time. Any thread."""

    clock: Clock

    def signal(self) -> Signal:
        """Return an event on which its threads can wait."""

    def lock(self) -> AbstractContextManager[object]:
        """Return a lock that a thread may hold while it waits for something else."""

    def queue(self) -> Queue[Any]:
        """Return an endless queue between its threads."""

    def start(self, name: str, work: Callable[[], object]) -> Joinable:
        """Run `work` in a thread of its own."""

    def system(self, name: str, workers: int | Workers) -> ActorSystem: ...


class Machine:
    """The threads of the operating system."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = SystemClock() if clock is None else clock

    def signal(self) -> Signal:
        return Event()

    def lock(self) -> AbstractContextManager[object]:
        return Lock()

    def queue(self) -> Queue[Any]:
        return SimpleQueue()

    def start(self, name: str, work: Callable[[], object]) -> Joinable:
        thread = Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def system(self, name: str, workers: int | Workers) -> ActorSystem:
        return ActorSystem(name, workers=workers, clock=self.clock)
