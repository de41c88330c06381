"""Threads that give actors turns, of one system or of several."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING

from .future import enter_turns

if TYPE_CHECKING:
    from .process import Process


class Workers:
    """`count` threads and the queue of the actors that are ready, first come first served.

    A turn takes about 5 ms, after which an actor with more to do queues again: so no system's actors have to
    wait longer than one turn of each ready actor.
    """

    def __init__(self, name: str, count: int) -> None:
        if count < 1:
            raise ValueError(f"workers of {name}: {count}; at least 1")
        self.ready: SimpleQueue[Process | None] = SimpleQueue()
        self.count = count
        self.systems = 0
        """Number of systems whose actors it runs."""
        self._lock = Lock()
        self._threads = [
            Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def join(self, systems: int) -> None:
        """Note that a system begins (1) or ends (-1) to use the threads."""
        with self._lock:
            self.systems += systems

    def close(self) -> None:
        """End the threads, once no actor is left that needs them. Safe to repeat."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self.ready.put(None)
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        enter_turns(True)
        while (process := self.ready.get()) is not None:
            process.poll()
