"""The thread that runs all of gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar, copy_context
from threading import Lock, Thread, get_ident
from typing import Any, ClassVar, Final, TypeVar
from weakref import WeakKeyDictionary

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
    """An asyncio loop in a thread of its own, or of all that share one.

    gRPC has one event queue for all loops of a process, and wakes each of them at every event: so the clients
    of many feeds share a loop. Each has its own tasks there: those that it began, and those that they began.

    `on_error` is called in the loop's thread with every exception that a spawned task or a callback raised.
    `start` (once) and `stop` are called from other threads; the remaining methods in between.
    """

    def __init__(
        self,
        name: str = "tidemill-tikv",
        on_error: Callable[[BaseException], None] = log_error,
        *,
        is_shared: bool = False,
        running: Callable[[str], RunningLoop] | None = None,
    ) -> None:
        """With `is_shared` the loop is that of all such ones. `running` starts another one, of a name."""
        self._name = name
        self._on_error = on_error
        self._is_shared = is_shared
        self._new_loop = running or (RunningLoop.shared if is_shared else RunningLoop)
        self._running: RunningLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()  # the loop itself holds tasks weakly
        self._context = copy_context()
        self._context.run(_OWNER.set, self)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        if self._running is None:
            raise InvariantViolated(f"the loop of {self._name} is not running")
        return self._running.loop

    @property
    def inside(self) -> bool:
        """True if the caller is in the loop's thread."""
        return self._running is not None and self._running.is_inside

    def start(self) -> None:
        self._running = self._new_loop(self._name)

    def stop(self) -> None:
        """Cancel every task, wait until all have ended, and end the thread unless others use it.
        Idempotent."""
        if (running := self._running) is None:
            return
        left = self.run(self._cancel_all(running))
        self._running = None
        running.leave()
        if left:
            raise InvariantViolated(f"{self._name}: tasks that ignored their cancellation: {left}")

    def run(self, work: Coroutine[object, None, T], timeout_seconds: float | None = None) -> T:
        """Run the coroutine and return its result; called from another thread than the loop's.

        Raises its exception; TimeoutError after `timeout_seconds`, and then cancels it.
        """
        if self.inside:
            work.close()
            raise InvariantViolated(f"run() would wait in {self._name} for itself")
        return self._submit(asyncio.wait_for(work, timeout_seconds), work).result()

    def begin(self, work: Coroutine[object, None, T]) -> Future[T]:
        """Start the coroutine from any thread; return its result to come."""
        return self._submit(work, work)

    def spawn(self, work: Coroutine[object, None, T], name: str | None = None) -> asyncio.Task[T]:
        """Start a task from the loop's thread; an exception that ends it goes to `on_error`."""
        if self._running is None:
            work.close()
        task = self.loop.create_task(work, name=name, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def submit(self, work: Coroutine[object, None, object], name: str | None = None) -> None:
        """Call `spawn` from any thread."""

        async def begin() -> None:
            self.spawn(work, name)

        self._submit(begin(), work)

    def call(self, work: Callable[[], object]) -> None:
        """Call `work` in the loop's thread, from any thread; does nothing once it is stopped."""

        def unless_stopped() -> None:
            if self._running is not None:
                work()

        if (running := self._running) is not None:
            with suppress(RuntimeError):  # the loop is closed
                running.loop.call_soon_threadsafe(unless_stopped, context=self._context.copy())

    def _submit(self, outer: Coroutine[object, None, T], work: Coroutine[object, None, object]) -> Future[T]:
        if (running := self._running) is None:
            outer.close()
            work.close()
            raise InvariantViolated(f"the loop of {self._name} is not running")
        return self._context.copy().run(running.submit, outer)

    async def _cancel_all(self, running: RunningLoop) -> list[str]:
        """Cancel all tasks; return the names of those that didn't end."""
        tasks = running.tasks_of(self if self._is_shared else None) - {asyncio.current_task()}
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

    def failed(self, error: BaseException) -> None:
        """Take an error of a callback; one that was left behind by the end is none."""
        if self._running is not None:
            self._on_error(error)


_OWNER: Final[ContextVar[LoopThread]] = ContextVar("owner of a task")


class RunningLoop:
    """A loop that runs in its thread, until all who use it have left."""

    _shared: ClassVar[RunningLoop | None] = None
    _lock: ClassVar[Lock] = Lock()
    _new_task: ClassVar[type[asyncio.Task[Any]]] = asyncio.Task

    def __init__(self, name: str) -> None:
        self.loop = self._start(name)
        self.loop.set_task_factory(self._make_task)
        self.loop.set_exception_handler(self._on_callback_error)
        self._users = 1
        self._owners: WeakKeyDictionary[asyncio.Task[Any], LoopThread] = WeakKeyDictionary()

    def _start(self, name: str) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        self.thread = Thread(target=self._run, args=(loop,), name=name)
        self.thread.start()
        return loop

    @classmethod
    def shared(cls, name: str) -> RunningLoop:
        """Return the loop of all who share one, started under the first one's name."""
        with cls._lock:
            if cls._shared is None:
                cls._shared = cls(name)
            else:
                cls._shared._users += 1
            return cls._shared

    @property
    def is_inside(self) -> bool:
        """True in the loop's thread."""
        return self.thread.ident == get_ident()

    def submit(self, work: Coroutine[object, None, T]) -> Future[T]:
        """Start a task from another thread, which may wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def leave(self) -> None:
        """End the thread if this was the last user."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if RunningLoop._shared is self:
                RunningLoop._shared = None
        self._end()

    def _end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def tasks_of(self, owner: LoopThread | None) -> set[asyncio.Task[object]]:
        """Return the unfinished tasks of an owner; all without one."""
        tasks = asyncio.all_tasks(self.loop)
        return tasks if owner is None else {task for task in tasks if self._owners.get(task) is owner}

    def _make_task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = self._new_task(work, loop=loop, **options)
        context = options.get("context")
        owner = _OWNER.get(None) if context is None else context.get(_OWNER)
        if owner is not None:
            self._owners[task] = owner
        return task

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    def _on_callback_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or InvariantViolated(context["message"])
        handle = context.get("handle")
        # An event that one loop has taken isn't found by the others, and an event for a closed loop appears
        # as an error in another one.
        from_queue = "PollerCompletionQueue" in repr(handle)
        closed = isinstance(error, RuntimeError) and str(error) == "Event loop is closed"
        if closed or (from_queue and isinstance(error, BlockingIOError)):
            return
        task = context.get("task") or context.get("future")
        owner = None if task is None else self._owners.get(task)
        if owner is None and handle is not None:
            owner = handle._context.get(_OWNER)
        if owner is None:
            log_error(error)
        else:
            owner.failed(error)


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
