"""asyncio by virtual time: loops that the scheduler steps, in place of loops in threads of their own."""

from __future__ import annotations

import asyncio
from asyncio import events, futures
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context
from typing import Any, ClassVar, Final, TypeVar

from ...actors.clock import Alarm
from ...emulator.loop import LoopThread as EmulatorLoopThread
from ...puller.grpc.loop import RunningLoop
from .scheduler import Fiber, Host, Scheduler

T = TypeVar("T")

MOST_CALLBACKS: Final = 8
"""Maximum number of callbacks in a turn."""


class NumberedTask(asyncio.Task[Any]):
    """A task whose hash is a number, so that a set of tasks has the same order in each run."""

    def __init__(self, work: Any, *, loop: VirtualLoop, **options: Any) -> None:
        self._number = loop.next_number()
        super().__init__(work, loop=loop, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class NumberedFuture(asyncio.Future[Any]):
    def __init__(self, *, loop: VirtualLoop) -> None:
        self._number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class FiberFuture(Future[T]):
    """The result of a task, for which fibers wait."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def result(self, timeout: float | None = None) -> T:
        self._scheduler.wait(self.done, timeout)
        return super().result(0)


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop of a host. A turn of it makes some of its callbacks, in their order, in a fiber."""

    _ready: Any  # of BaseEventLoop: handles to run

    def __init__(self, name: str, host: Host, scheduler: Scheduler) -> None:
        self.name = name
        self.host = host
        self._scheduler = scheduler
        self._last = 0
        super().__init__()
        self._alarms: dict[asyncio.TimerHandle, Alarm] = {}
        self._fiber = Fiber(scheduler, host, name, self._work)
        self.set_task_factory(_make_task)
        scheduler.add(self)

    @property
    def is_inside(self) -> bool:
        """True in one of its callbacks."""
        return self._scheduler.fiber is self._fiber

    # --- for the scheduler -----------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        return bool(self._ready)

    def turn(self) -> None:
        try:
            self._fiber.turn()
        finally:
            events._set_running_loop(None)

    def _work(self) -> None:
        ready, draw = self._ready, self._scheduler.random.randint
        while True:
            events._set_running_loop(self)
            for _ in range(draw(1, MOST_CALLBACKS)):
                if not ready or self.host.is_dead:
                    break
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
            self._fiber.pause()

    def submit(self, work: Coroutine[object, None, T]) -> Future[T]:
        """Start a task from a fiber, which may wait for its result."""
        future = FiberFuture[T](self._scheduler)
        self.call_soon(lambda: futures._chain_future(self.create_task(work), future))  # type: ignore[attr-defined]
        return future

    def dispose(self) -> None:
        """Forget everything, as the host is dead: coroutines are closed where they are."""
        self._scheduler.remove(self)
        self._ready.clear()
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        for task in sorted(asyncio.all_tasks(self), key=hash):
            work = task.get_coro()
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with suppress(RuntimeError, ValueError):  # it awaits something at its end, or runs now
                work.close()
        self._ready.clear()
        if not self.is_closed():
            self.close()

    # --- for its tasks ---------------------------------------------------------------------------

    def time(self) -> float:
        return self._scheduler.clock.now()

    def next_number(self) -> int:
        self._last += 1
        return self._last

    def create_future(self) -> asyncio.Future[Any]:
        return NumberedFuture(loop=self)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self.host.is_dead:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        handle._scheduled = True  # type: ignore[attr-defined]

        def ring() -> None:
            self._alarms.pop(handle, None)
            handle._scheduled = False  # type: ignore[attr-defined]
            self._ready.append(handle)

        if not self.host.is_dead:
            self._alarms[handle] = self._scheduler.clock.call_at(when, ring)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        alarm = self._alarms.pop(handle, None)
        if alarm is not None:
            alarm.cancel()


def _make_task(loop: Any, work: Any, **options: Any) -> asyncio.Future[Any]:
    return NumberedTask(work, loop=loop, **options)


class ClientLoop(RunningLoop):
    """The loop of a gRPC client on a simulated machine."""

    _new_task: ClassVar[type[asyncio.Task[Any]]] = NumberedTask

    def __init__(self, name: str, host: Host, scheduler: Scheduler) -> None:
        self._host = host
        self._scheduler = scheduler
        super().__init__(name)

    def _start(self, name: str) -> asyncio.AbstractEventLoop:
        self._virtual = VirtualLoop(name, self._host, self._scheduler)
        return self._virtual

    @property
    def is_inside(self) -> bool:
        return self._virtual.is_inside

    def submit(self, work: Coroutine[object, None, T]) -> Future[T]:
        return self._virtual.submit(work)

    def _end(self) -> None:
        self._virtual.dispose()


class ClusterLoop(EmulatorLoopThread):
    """The loop of an emulated cluster."""

    def __init__(self, name: str, host: Host, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._virtual = VirtualLoop(name, host, scheduler)
        super().__init__(name)

    def _start(self) -> None:
        self.loop = self._virtual

    @property
    def _is_inside(self) -> bool:
        return self._virtual.is_inside

    def _submit(self, work: Coroutine[object, None, T]) -> Future[T]:
        return self._virtual.submit(work)

    def _end(self) -> None:
        self._virtual.dispose()
