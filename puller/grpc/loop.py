"""The thread that runs all of gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread, get_ident
from typing import Any, Final, TypeVar

from ...actors import Clock
from ...errors import InvariantViolated

log = logging.getLogger("tidemill.puller")

T = TypeVar("T")

STOP_SECONDS: Final = 10.0
"""Time for cancelled tasks to end; then they are abandoned, and `stop` raises an error that names them."""


def log_error(error: BaseException) -> None:
    """Log an error that ended a task nobody waits for."""
    log.error("a task of the TiKV puller failed", exc_info=error)


class LoopThread:
    """An asyncio loop in a thread of its own.

    `on_error` is called in the loop's thread with every exception that a spawned task or a callback raised.
    `start` (once) and `stop` are called from other threads; the remaining methods in between.
    """

    def __init__(
        self, name: str = "tidemill-tikv", on_error: Callable[[BaseException], None] = log_error
    ) -> None:
        self._on_error = on_error
        self._thread = Thread(target=self._run, name=name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise InvariantViolated(f"the loop of {self._thread.name} is not running")
        return self._loop

    @property
    def inside(self) -> bool:
        """True if the caller is in the loop's thread."""
        return self._thread.ident == get_ident()

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._on_callback_error)
        self._thread.start()

    def stop(self) -> None:
        """Cancel every task, wait until all have ended and end the thread. Idempotent."""
        if self._loop is None:
            return
        loop, left = self._loop, self.run(self._cancel_all())
        self._loop = None
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        if left:
            raise InvariantViolated(f"{self._thread.name}: tasks that ignored their cancellation: {left}")

    def run(self, work: Coroutine[object, None, T], timeout_seconds: float | None = None) -> T:
        """Run the coroutine and return its result; called from another thread than the loop's.

        Raises its exception; TimeoutError after `timeout_seconds`, and then cancels it.
        """
        if self.inside:
            work.close()
            raise InvariantViolated(f"run() would wait in {self._thread.name} for itself")
        return self._submit(asyncio.wait_for(work, timeout_seconds), work).result()

    def begin(self, work: Coroutine[object, None, T]) -> Future[T]:
        """Start the coroutine from any thread; return its result to come."""
        return self._submit(work, work)

    def spawn(self, work: Coroutine[object, None, T], name: str | None = None) -> asyncio.Task[T]:
        """Start a task from the loop's thread; an exception that ends it goes to `on_error`."""
        task = self.loop.create_task(work, name=name)
        self._tasks.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._on_done)
        return task

    def submit(self, work: Coroutine[object, None, object], name: str | None = None) -> None:
        """Call `spawn` from any thread."""

        async def begin() -> None:
            self.spawn(work, name)

        self._submit(begin(), work)

    def call(self, work: Callable[[], object]) -> None:
        """Call `work` in the loop's thread, from any thread; does nothing once the loop is stopped."""
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(work)

    def _submit(self, outer: Coroutine[object, None, T], work: Coroutine[object, None, object]) -> Future[T]:
        if self._loop is None:
            outer.close()
            work.close()
            raise InvariantViolated(f"the loop of {self._thread.name} is not running")
        return asyncio.run_coroutine_threadsafe(outer, self._loop)

    def _run(self) -> None:
        loop = self.loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    async def _cancel_all(self) -> list[str]:
        """Cancel all tasks; return the names of those that didn't end."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if not tasks:
            return []
        _, left = await asyncio.wait(tasks, timeout=STOP_SECONDS)
        return sorted(task.get_name() for task in left)

    def _on_done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)

    def _on_callback_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or InvariantViolated(context["message"])
        # gRPC has one event queue for all loops of a process and wakes all of them: an event taken by one
        # loop isn't found by the others, and an event for a closed loop appears as an error in another one.
        from_queue = "PollerCompletionQueue" in repr(context.get("handle"))
        closed = isinstance(error, RuntimeError) and str(error) == "Event loop is closed"
        if not (closed or (from_queue and isinstance(error, BlockingIOError))):
            self._on_error(error)


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait in the loop's thread by the injected clock, so that a test's jump in time is seen."""
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    def ring() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(wake)

    alarm = clock.call_at(clock.now() + seconds, ring)
    try:
        await woken
    finally:
        alarm.cancel()
