"""Feeds inside a Python program: `for`, `async for`, or a callback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore
from typing import Any, Self

from .actors import Stream, SystemClock
from .engine.feed import Feed
from .engine.options import FeedOptions, checkpoint_file, feed_options, open_sinks
from .engine.status import FeedStatus
from .errors import InvariantViolated, TidemillError
from .events import Checkpoint, Item, Transaction, Wait
from .sink.python import PythonSink

WAITING_BATCHES = 4
"""Batches that wait for the program; behind them the source is slowed."""


def open_feed(
    source: str,
    tables: Sequence[str],
    *,
    data_dir: str | Path = "tidemill-data",
    name: str = "tidemill",
    until: str | None = None,
    **more: Any,
) -> OpenFeed:
    """A feed whose transactions come to this program.

    `source` is a URL, `tables` are patterns; `more` are the other sections of a feed.toml as
    dictionaries, for instance `sorter={"memory_bytes": "16MiB"}`, and source options as
    `source_options={"snapshot": False}`. With `until` ("now" or a position) it ends there by itself, once
    everything up to there is acknowledged.

    A context manager, in both ways: `with` starts it and stops it, `async with` too, without blocking
    the loop. Raises ConfigError.
    """
    return OpenFeed(_options(source, tables, data_dir, name, until, more))


def follow(
    receive: Callable[[Transaction], object],
    source: str,
    tables: Sequence[str],
    *,
    data_dir: str | Path = "tidemill-data",
    name: str = "tidemill",
    until: str | None = None,
    **more: Any,
) -> None:
    """Call `receive` with each transaction, in commit order; it is acknowledged when that returns.

    Returns when `until` is reached, which without one is never. What `receive` raises stops the feed
    and is raised as SinkError; the transaction comes again after a restart.
    """
    options = _options(source, tables, data_dir, name, until, more)

    def each(items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Transaction):
                receive(item)

    feed = Feed(
        options,
        [PythonSink("python", each, checkpoint_file(options, "python"), ddl=False), *open_sinks(options)],
    )
    feed.start()
    try:
        feed.wait()
    finally:
        feed.stop()
        feed.wait()
    if feed.error is not None:
        raise feed.error


class OpenFeed:
    """Transactions in commit order, for one reader; made by `open_feed`.

    A transaction larger than a batch comes in parts: `txn.last` is True on the last. Those after the
    last acknowledged one come again after a restart.
    """

    def __init__(self, options: FeedOptions) -> None:
        self._sink = _Sink(
            "python", self._receive, checkpoint_file(options, "python"), explicit=True, ddl=False
        )
        self._clock = SystemClock()
        self._handed_out = self._acknowledged = 0  # the ts of the last transaction
        self._unacknowledged_since = 0.0
        self._feed = Feed(options, [self._sink, *open_sinks(options)])
        self._handover: Handover | None = None
        self._stream: Stream[Sequence[Item]] | None = None

    def ack(self, txn: Transaction) -> None:
        """`txn` and everything before it is processed: the checkpoint moves behind it, soon after.

        Any thread. Within a transaction that comes in parts only the last counts.
        """
        if txn.last:
            self._acknowledged = max(self._acknowledged, txn.commit_ts)
            self._sink.acknowledge(txn)
            if not self._sink.flush_is_due:
                self._sink.flush_is_due = True
                self._feed.flush()

    def status(self) -> FeedStatus:
        return self._feed.status()

    def explain(self) -> list[Wait]:
        """What waits on what, now; on an `ack` of this program, too."""
        waits = self._feed.explain()
        if self._acknowledged < self._handed_out:
            seconds = self._clock.now() - self._unacknowledged_since
            waits.append(Wait("program", "acknowledgement", seconds))
        return waits

    def _receive(self, items: Sequence[Item]) -> None:
        if self._acknowledged >= self._handed_out:
            self._unacknowledged_since = self._clock.now()
        self._handed_out = items[-1].commit_ts
        if self._stream is not None:
            self._stream.put(items)
        elif self._handover is not None:
            self._handover.put(items)

    # --- for -------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._handover = Handover()
        self._feed.start(on_end=self._handover.finish)
        return self

    def __exit__(self, *_exc_info: object) -> None:
        assert self._handover is not None
        self._feed.stop()
        self._handover.close()
        self._feed.wait()

    def __iter__(self) -> Iterator[Transaction]:
        """Each transaction that changes rows. Ends with the feed; raises its error."""
        if self._handover is None:
            raise InvariantViolated("iterate over a feed inside `with`")
        while (items := self._handover.get()) is not None:
            for item in items:
                if isinstance(item, Transaction):
                    yield item
        self._feed.wait()
        if self._feed.error is not None:
            raise self._feed.error

    # --- async for -------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._stream = Stream(WAITING_BATCHES, name="feed")
        self._feed.start(on_end=self._stream.finish)
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        assert self._stream is not None
        self._feed.stop()
        self._stream.close()
        await asyncio.to_thread(self._feed.wait)

    async def __aiter__(self) -> AsyncIterator[Transaction]:
        async for batch in self.batches():
            for txn in batch:
                yield txn

    async def batches(self) -> AsyncIterator[list[Transaction]]:
        """All transactions that wait, at least one. Ends with the feed; raises its error."""
        if self._stream is None:
            raise InvariantViolated("read a feed's batches inside `async with`")
        async for several in self._stream:
            batch = [item for items in several for item in items if isinstance(item, Transaction)]
            if batch:
                yield batch
        await asyncio.to_thread(self._feed.wait)
        if self._feed.error is not None:
            raise self._feed.error


class _Sink(PythonSink):
    """Knows whether a flush is on its way, so that many acknowledgements ask for one."""

    flush_is_due = False

    def flush(self) -> Checkpoint | None:
        self.flush_is_due = False
        return super().flush()


class HandoverClosed(TidemillError):
    """Nobody reads any more."""


class Handover:
    """A bounded queue of batches from one thread to another, with an end."""

    def __init__(self, capacity: int = WAITING_BATCHES) -> None:
        self._room = BoundedSemaphore(capacity)
        self._batches: SimpleQueue[Sequence[Item] | None] = SimpleQueue()
        self._closed = False

    def put(self, batch: Sequence[Item]) -> None:
        """Wait for room. Raises HandoverClosed."""
        self._room.acquire()
        if self._closed:
            self._room.release()
            raise HandoverClosed("the feed is being closed")
        self._batches.put(batch)

    def get(self) -> Sequence[Item] | None:
        """Wait for a batch; None at the end."""
        batch = self._batches.get()
        if batch is None:
            self._batches.put(None)  # the end stays the end
        else:
            self._room.release()
        return batch

    def finish(self) -> None:
        """No more batches: the reader ends after those that wait."""
        self._batches.put(None)

    def close(self) -> None:
        """Nobody will read: whoever waits for room goes on, and gets HandoverClosed."""
        self._closed = True
        with suppress(Empty):
            while True:
                if self._batches.get_nowait() is not None:
                    self._room.release()
        self.finish()


def _options(
    source: str,
    tables: Sequence[str],
    data_dir: str | Path,
    name: str,
    until: str | None,
    more: dict[str, Any],
) -> FeedOptions:
    section = {"url": source, "tables": list(tables), **more.pop("source_options", {})}
    found = {"source": section, "data_dir": str(data_dir), "name": name, **more}
    if until is not None:
        found["until"] = until
    return feed_options(found)
