"""The answer to an ask."""

from __future__ import annotations

import asyncio
import queue
import sys
from collections.abc import Callable, Generator
from contextlib import suppress
from threading import Lock, local
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import pykka

if TYPE_CHECKING:
    from pykka._types import OptExcInfo

T = TypeVar("T")


class _Turns(local):
    in_turn = False


_thread = _Turns()


def enter_turns(yes: bool) -> None:
    """From here on this thread runs actors, or no longer does."""
    _thread.in_turn = yes


def in_turn() -> bool:
    """Return True if this thread runs an actor now: then it must not block."""
    return _thread.in_turn


class LockWaiter(Protocol):
    """How a thread waits: until the lock is free (True) or `timeout` seconds have passed (False)."""

    def __call__(self, lock: Lock, timeout: float | None) -> bool: ...


def sleep_until_free(lock: Lock, timeout: float | None) -> bool:
    return lock.acquire(timeout=-1 if timeout is None else max(0.0, timeout))


def wake(sleeper: asyncio.Future[None]) -> None:
    """Complete a future of an event loop, from any thread; nothing if the loop is closed."""

    def complete() -> None:
        if not sleeper.done():
            sleeper.set_result(None)

    with suppress(RuntimeError):
        sleeper.get_loop().call_soon_threadsafe(complete)


class PooledFuture(pykka.Future[T]):
    """A pykka future that can be awaited without blocking the event loop."""

    def __init__(self, wait: LockWaiter = sleep_until_free) -> None:
        super().__init__()
        self._wait = wait
        self._lock = Lock()
        self._done = False
        self._value: object = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] = []

    def set(self, value: T | None = None) -> None:
        """Answer. Raises queue.Full if it was answered before."""
        self._finish(value, None)

    def set_exception(self, exc_info: OptExcInfo | None = None) -> None:
        """Answer with an exception, by default the one being handled."""
        kind, error, traceback = exc_info or sys.exc_info()
        if error is None:
            error = kind() if kind is not None else RuntimeError("no exception to answer with")
        self._finish(None, error.with_traceback(traceback))

    def _finish(self, value: T | None, error: BaseException | None) -> None:
        with self._lock:
            if self._done or self._get_hook is not None:
                raise queue.Full
            self._value = value
            self._error = error
            self._done = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call once answered: at once if it is, else in the thread that answers."""
        with self._lock:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback()

    def get(self, *, timeout: float | None = None) -> T:
        """Wait for the answer. Raises what the actor raised, or pykka.Timeout."""
        if self._get_hook is not None:
            return super().get(timeout=timeout)
        if not self._done:
            asleep = Lock()
            asleep.acquire()
            self.when_done(asleep.release)
            if not self._wait(asleep, timeout):
                raise pykka.Timeout(f"no answer in {timeout} seconds")
        return self._result()

    def _result(self) -> T:
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def __await__(self) -> Generator[Any, None, T]:
        loop = asyncio.get_running_loop()
        if self._get_hook is not None:  # a map, filter or join of others: computing it may block
            return (yield from loop.run_in_executor(None, self.get).__await__())
        if not self._done:
            woken: asyncio.Future[None] = loop.create_future()

            self.when_done(lambda: wake(woken))
            yield from woken.__await__()
        return self._result()

    __iter__ = __await__


class Ask:
    """In a mailbox: a message whose sender waits for the answer."""

    __slots__ = ("future", "message")

    def __init__(self, message: Any, future: PooledFuture[Any]) -> None:
        self.message = message
        self.future = future

    def answer(self, value: object) -> None:
        with suppress(queue.Full):  # its owner may have set it himself
            self.future.set(value)

    def fail(self, error: BaseException) -> None:
        with suppress(queue.Full):
            self.future.set_exception((type(error), error, error.__traceback__))
