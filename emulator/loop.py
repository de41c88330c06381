"""The event loop of an emulated cluster, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from threading import Event, Lock, Thread, get_ident
from typing import Any, TypeVar

T = TypeVar("T")


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that tolerates other loops with gRPC in the process: they all share gRPC's poller.

    The poller delivers a call's last event to whichever loop polls, which passes it to the loop of the call;
    that one may be closed by then, and nobody waits for the event any more.
    """

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        if self.is_closed():
            return asyncio.Handle(callback, args, self)
        return super().call_soon_threadsafe(callback, *args, context=context)

    def call_exception_handler(self, context: dict[str, object]) -> None:
        late = "PollerCompletionQueue" in str(context.get("handle"))
        if not (late and isinstance(context.get("exception"), RuntimeError | BlockingIOError)):
            super().call_exception_handler(context)


class LoopThread:
    """Runs coroutines for other threads. All state of a cluster belongs to this thread."""

    loop: asyncio.AbstractEventLoop

    def __init__(self, name: str) -> None:
        self._name = name
        self._stopped = False
        self._lock = Lock()
        """Held while work is submitted, so that none is submitted after the stop."""
        self._start()

    def _start(self) -> None:
        ready = Event()
        self._thread = Thread(target=self._main, args=(ready,), name=self._name, daemon=True)
        self._thread.start()
        ready.wait()

    def _main(self, ready: Event) -> None:
        loop = self.loop = _Loop()
        ready.set()
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    @property
    def _is_inside(self) -> bool:
        return get_ident() == self._thread.ident

    def _submit(self, work: Coroutine[object, None, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def _end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    @property
    def stopped(self) -> bool:
        return self._stopped

    def run(self, work: Coroutine[object, None, T]) -> T:
        """Run a coroutine and return its result; from any other thread.

        Raises RuntimeError if the loop has stopped, or stops before the end.
        """
        try:
            with self._lock:
                if self._stopped:
                    raise RuntimeError("the cluster is closed")
                if self._is_inside:
                    raise RuntimeError("called in the cluster's own thread, which would wait for itself")
                promised = self._submit(work)
        except RuntimeError:
            work.close()
            raise
        try:
            return promised.result()
        except CancelledError:
            raise RuntimeError("the cluster was closed meanwhile") from None

    def call(self, work: Callable[..., T], *arguments: object) -> T:
        """Call a function in the loop's thread and return its result."""

        async def called() -> T:
            return work(*arguments)

        return self.run(called())

    def stop(self) -> None:
        """End all tasks, the loop and its thread."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
        self._submit(_cancel_others()).result()
        self._end()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
