"""A feed that calls a function of the program."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import get_ident
from typing import Any, Literal, Self, cast, overload

from ..chain import Stage
from ..engine.feed import Feed
from ..engine.opening import checkpoint_file
from ..engine.options import FeedOptions
from ..errors import SinkError, UsageError
from ..events import Item, Transaction
from ..sink import SinkFactory
from ..sink.python import python_sink
from ..sorter import SorterOptions
from .arguments import SinkArgument, SourceArgument, read_arguments
from .handle import FeedHandle


@overload
def follow(
    receive: Callable[[Transaction], object],
    source: SourceArgument,
    tables: Sequence[str],
    *,
    data_dir: str | Path = ...,
    name: str = ...,
    until: str | None = ...,
    source_options: Mapping[str, object] | None = ...,
    sorter: SorterOptions | Mapping[str, object] | None = ...,
    sinks: Sequence[SinkArgument] = ...,
    stages: Sequence[Stage] = ...,
    ddl: Literal[False] = ...,
    block: bool = ...,
) -> FollowHandle: ...
@overload
def follow(
    receive: Callable[[Item], object],
    source: SourceArgument,
    tables: Sequence[str],
    *,
    data_dir: str | Path = ...,
    name: str = ...,
    until: str | None = ...,
    source_options: Mapping[str, object] | None = ...,
    sorter: SorterOptions | Mapping[str, object] | None = ...,
    sinks: Sequence[SinkArgument] = ...,
    stages: Sequence[Stage] = ...,
    ddl: bool,
    block: bool = ...,
) -> FollowHandle: ...
def follow(
    receive: Callable[[Any], object],
    source: SourceArgument,
    tables: Sequence[str],
    *,
    data_dir: str | Path = "tidemill-data",
    name: str = "tidemill",
    until: str | None = None,
    source_options: Mapping[str, object] | None = None,
    sorter: SorterOptions | Mapping[str, object] | None = None,
    sinks: Sequence[SinkArgument] = (),
    stages: Sequence[Stage] = (),
    ddl: bool = False,
    block: bool = True,
) -> FollowHandle:
    """Call `receive` with each transaction, in commit order; it is acknowledged when the call returns.

    Returns when the feed has ended: at `until`, or by its error. With `block=False` it returns once the feed
    is started. An async `receive` runs in the running event loop, and the handle is returned at once, to be
    awaited; where none is running, in a loop made for it.

    The other arguments are those of `open`; with `ddl`, `receive` gets schema changes too. Raises
    ConfigError, and when it blocks the feed's error. What `receive` raises stops the feed and is raised as
    SinkError; the transaction comes again after a restart.
    """
    options, opened = read_arguments(
        source,
        tables,
        data_dir=data_dir,
        name=name,
        until=until,
        source_options=source_options,
        sorter=sorter,
        sinks=sinks,
    )
    is_async = inspect.iscoroutinefunction(receive) or inspect.iscoroutinefunction(type(receive).__call__)
    handle = FollowHandle(_Callback(receive, is_async), options, opened, ddl=ddl, stages=stages)
    if is_async and _running_loop() is None:
        if not block:
            raise UsageError("follow: an async function needs a running event loop, or block=True")
        asyncio.run(_to_end(handle))
        return handle
    handle._start()
    if block and not is_async:
        with handle:
            handle.wait()
    return handle


async def _to_end(handle: FollowHandle) -> None:
    async with handle._start():
        await handle


class _Callback:
    """Calls a function with each item: in the sink's thread, or an async one in an event loop."""

    def __init__(self, receive: Callable[[object], object], is_async: bool) -> None:
        self._receive = receive
        self._is_async = is_async
        self._loop: asyncio.AbstractEventLoop | None = None  # of an async function
        self._thread = 0  # of the calls so far

    def bind(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Run an async function in `loop`."""
        self._loop = loop if self._is_async else None

    def is_here(self) -> bool:
        """True if the function runs in the current thread."""
        loop = _running_loop()
        return self._thread == get_ident() or (loop is not None and loop is self._loop)

    def __call__(self, items: Sequence[Item]) -> None:
        if self._loop is None:
            self._thread = get_ident()
            try:
                for item in items:
                    self._call(item)
            finally:
                self._thread = 0
        elif self._loop.is_closed():
            raise SinkError("the event loop of the function was closed: await the handle of follow in it")
        else:  # a whole batch at once: a call per item would switch threads for each
            asyncio.run_coroutine_threadsafe(self._call_each(items), self._loop).result()

    def _call(self, item: Item) -> None:
        result = self._receive(item)
        if result is not None and inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise UsageError("follow: the function returned an awaitable: pass one made by `async def`")

    async def _call_each(self, items: Sequence[Item]) -> None:
        for item in items:
            await cast("Awaitable[object]", self._receive(item))


class FollowHandle(FeedHandle):
    """A feed that calls a function; made by `tidemill.follow`.

    `await` waits for its end. `with` and `async with` stop it. All raise the feed's error, the latter two
    unless the body has raised.
    """

    def __init__(
        self,
        callback: _Callback,
        options: FeedOptions,
        sinks: Sequence[SinkFactory],
        *,
        ddl: bool,
        stages: Sequence[Stage],
    ) -> None:
        store = checkpoint_file(options, "python")
        sink = python_sink("python", callback, store, ddl=ddl)
        self._callback = callback
        self._feed = Feed(options, [sink, *sinks], stages={sink.name: stages})
        self._ended: Future[None] = Future()
        self._ended.set_running_or_notify_cancel()  # a cancelled `await` must not cancel it

    def _start(self) -> Self:
        self._callback.bind(_running_loop())
        self._feed.start(on_end=lambda: self._ended.set_result(None))
        return self

    def stop(self) -> None:
        """End the feed after the current call, with its checkpoint saved. Any thread; returns at once."""
        self._feed.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for the feed's end; True if it has ended. Raises its error.

        Raises UsageError where waiting would keep the function from being called.
        """
        self._require_elsewhere()
        if not self._feed.wait(timeout):
            return False
        self._raise_error()
        return True

    def _require_elsewhere(self) -> None:
        if self._callback.is_here():
            raise UsageError(
                "waiting here would keep the function from running: await the handle, or stop it"
            )

    def _raise_error(self) -> None:
        if self._feed.error is not None:
            raise self._feed.error

    async def _end(self) -> None:
        await asyncio.wrap_future(self._ended)
        await asyncio.to_thread(self._feed.wait)  # until the status is written

    async def _end_well(self) -> None:
        await self._end()
        self._raise_error()

    def __await__(self) -> Generator[object, None, None]:
        return self._end_well().__await__()

    def __enter__(self) -> Self:
        """Raises UsageError in the event loop of the function: use `async with`."""
        self._require_elsewhere()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._feed.stop()
        self._feed.wait()
        if error is None:
            self._raise_error()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        self._feed.stop()
        await self._end()
        if error is None:
            self._raise_error()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
