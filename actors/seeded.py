"""Actors without threads or real time, for tests: the same seed gives the same interleaving."""

from __future__ import annotations

import asyncio
from random import Random
from threading import Lock

from .clock import ManualClock
from .future import enter_turns, in_turn
from .process import MAX_BATCH, Process
from .system import ActorSystem
from .workers import Workers


class SeededSystem(ActorSystem):
    """An ActorSystem whose actors run in the calling thread, one turn at a time, in a seeded order.

    Whatever would block the caller (`tell` to a full mailbox, `ask`, `stop`) runs the actors until
    it need not; once all are idle, time jumps to the next timer.
    """

    clock: ManualClock

    def __init__(self, seed: int = 0, *, name: str = "seeded", clock: ManualClock | None = None) -> None:
        self._random = Random(seed)
        super().__init__(name, clock=clock or ManualClock())

    def _start(self, _workers: int | Workers) -> None:
        self.ready = self._ready = _Ready()

    def step(self) -> bool:
        """Give one ready actor, drawn by the seed, a turn with as many messages; False if all are idle."""
        if in_turn():
            raise RuntimeError("an actor can't run the system that runs it")
        waiting = self._ready.processes
        if not waiting:
            return False
        process = waiting.pop(self._random.randrange(len(waiting)))
        process.chunk = self._random.randint(1, MAX_BATCH)
        enter_turns(True)
        try:
            process.poll()
        finally:
            enter_turns(False)
        return True

    def run(self, seconds: float = 0.0) -> None:
        """Run until all are idle and `seconds` have passed, timer by timer."""
        until = self.clock.now() + seconds
        while self.step() or self.clock.jump(until):
            pass
        self.clock.advance(until - self.clock.now())

    async def run_beside(self) -> None:
        """Run in the event loop beside its tasks, until cancelled: for aask, atell and streams.

        Time stands still meanwhile.
        """
        while True:
            self.step()
            await asyncio.sleep(0)

    def wait(self, lock: Lock, timeout: float | None) -> bool:
        until = None if timeout is None else self.clock.now() + timeout
        while not lock.acquire(blocking=False):
            if self.step() or self.clock.jump(until):
                continue
            if until is None:
                raise RuntimeError("all actors are idle and no timer is set: this would wait forever")
            self.clock.advance(until - self.clock.now())
            return False
        return True


class _Ready:
    def __init__(self) -> None:
        self.processes: list[Process] = []

    def put(self, process: Process | None, /) -> None:
        if process is not None:
            self.processes.append(process)
