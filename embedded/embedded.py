"""A feed that a program reads: `for` or `async for`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar, cast, overload

from ..actors import SystemClock
from ..chain import Stage
from ..engine.feed import Feed
from ..engine.handover import Handover, HandoverClosed
from ..engine.opening import checkpoint_file
from ..engine.options import FeedOptions
from ..errors import ConfigError, UsageError
from ..events import Checkpoint, Ddl, Item, Transaction, Wait
from ..sink import CheckpointStore, SinkFactory
from ..sink.python import Acknowledgements, PythonSink, Receiver
from ..sorter import SorterOptions
from .arguments import SinkArgument, SourceArgument, read_arguments
from .arrow_batch import ArrowBatch, InvalidDates
from .handle import FeedHandle

T_co = TypeVar("T_co", bound=Item, covariant=True)
B_co = TypeVar("B_co", bound=ArrowBatch | Ddl, covariant=True)


@overload
def open_feed(
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
    arrow: bool = ...,
    ddl: Literal[False] = ...,
) -> OpenFeed[Transaction]: ...
@overload
def open_feed(
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
    arrow: bool = ...,
    ddl: bool,
) -> OpenFeed[Item]: ...
def open_feed(
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
    arrow: bool = False,
    ddl: bool = False,
) -> OpenFeed[Any]:
    """Return a feed whose transactions come to this program; with `ddl` its schema changes, too.

    `source` is a URL, or the options of a source; `source_options` are options beside a URL, for instance
    `{"snapshot": False}`. `tables` are patterns. Each of `sinks` is a URL, a dictionary like a `[[sink]]`
    of a feed.toml, or an object with the methods of Sink. `stages` filter, route or hold back what comes to
    this program, in their order. With `until` ("now" or a position) the feed ends
    there, once everything up to there is acknowledged. With `arrow`, `OpenFeed.arrow_batches` can be used.

    `with` starts the feed and stops it; `async with` does so without blocking the event loop. Raises
    ConfigError.
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
    if arrow and find_spec("pyarrow") is None:
        raise ConfigError("arrow needs pyarrow: pip install 'tidemill[arrow]'")
    return OpenFeed(options, opened, ddl=ddl, stages=stages, arrow=arrow)


class OpenFeed(FeedHandle, Generic[T_co]):
    """Transactions in commit order, for one reader; made by `tidemill.open`, entered once.

    A transaction larger than a batch comes in parts: `txn.last` is True on the last. Those after the
    last acknowledged one come again after a restart.
    """

    def __init__(
        self,
        options: FeedOptions,
        sinks: Sequence[SinkFactory],
        *,
        ddl: bool,
        stages: Sequence[Stage],
        arrow: bool = False,
    ) -> None:
        store = checkpoint_file(options, "python")
        self._processed = _Processed()
        self._is_arrow = arrow
        python = SinkFactory(
            lambda: _Sink(
                "python", self._receive, store, self._processed, self._waits, ddl=ddl, reads_rows=not arrow
            )
        )
        self._clock = SystemClock()
        self._handed_out = 0, 0  # commit and start ts of the last item
        self._sources: set[str] = set()
        self._acknowledged = 0  # the ts of the last item
        self._unacknowledged_since = 0.0
        self._feed = Feed(options, [python, *sinks], stages={python.name: stages})
        self._handover: Handover | None = None
        self._is_async = False

    @property
    def feed(self) -> Feed:
        """The feed itself, for a server of several feeds."""
        return self._feed

    def ack(self, item: Item | ArrowBatch) -> None:
        """Acknowledge `item` and everything before it: the checkpoint moves past it, soon after.

        Any thread. Of a transaction that comes in parts only the last counts, and of Arrow batches one with
        `last`. Raises UsageError for what didn't come from this feed.
        """
        if not isinstance(item, Transaction | Ddl | ArrowBatch):
            raise UsageError(f"ack takes one transaction, not a {type(item).__name__}; of a batch the last")
        if (item.commit_ts, item.start_ts) > self._handed_out or item.source not in self._sources:
            raise UsageError(f"ack: the transaction of ts {item.commit_ts} didn't come from this feed")
        if item.last:
            self._acknowledged = max(self._acknowledged, item.commit_ts)
            self._processed.add(item)
            if not self._processed.flush_is_due:
                self._processed.flush_is_due = True
                self._feed.flush()

    @overload
    def arrow_batches(
        self: OpenFeed[Transaction], *, invalid_dates: InvalidDates = ...
    ) -> ArrowBatches[ArrowBatch]: ...
    @overload
    def arrow_batches(self, *, invalid_dates: InvalidDates = ...) -> ArrowBatches[ArrowBatch | Ddl]: ...
    def arrow_batches(self, *, invalid_dates: InvalidDates = "fail") -> ArrowBatches[Any]:
        """Return the changes as pyarrow RecordBatches, for `for` or `async for`; with `ddl` each Ddl too.

        Needs `arrow=True` of `open`. Rows that are still the source's bytes become columns without a Python
        object for each. With `invalid_dates="null"`, dates that Arrow can't represent (0000-00-00) are null;
        otherwise they raise SourceError.
        """
        if not self._is_arrow:
            raise UsageError("arrow_batches: open the feed with arrow=True")
        if invalid_dates not in ("fail", "null"):
            raise UsageError(f"invalid_dates: {invalid_dates!r} is neither 'fail' nor 'null'")
        return ArrowBatches(self._received, self.batches, invalid_dates)

    def _waits(self) -> list[Wait]:
        """Return the wait for an `ack` of this program, if there is one."""
        if self._acknowledged >= self._handed_out[0]:
            return []
        return [Wait("program", "acknowledgement", self._clock.now() - self._unacknowledged_since)]

    def _receive(self, items: Sequence[Item]) -> None:
        if self._acknowledged >= self._handed_out[0]:
            self._unacknowledged_since = self._clock.now()
        self._sources.update([item.source for item in items])
        self._handed_out = max(self._handed_out, (items[-1].commit_ts, items[-1].start_ts))
        assert self._handover is not None
        self._handover.put(items)

    def _enter(self, *, is_async: bool) -> Self:
        if self._handover is not None:
            raise UsageError("a feed is entered once; tidemill.open makes another one")
        self._handover, self._is_async = Handover(), is_async
        self._feed.start(on_end=self._handover.finish)
        return self

    def _leave(self) -> None:
        assert self._handover is not None
        self._feed.stop()
        self._handover.close()

    def _received(self) -> Iterator[Sequence[Item]]:
        if self._handover is None or self._is_async:
            raise UsageError("iterate over a feed inside `with tidemill.open(...) as feed`")
        return self._each(self._handover)

    def _each(self, handover: Handover) -> Iterator[Sequence[Item]]:
        yield from handover.each()
        self._feed.wait()
        self._raise_error()

    def _raise_error(self) -> None:
        error = self._feed.error
        if error is not None and not isinstance(error, HandoverClosed):
            raise error

    # --- for -------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start the feed. Raises ConfigError if its data directory can't be used."""
        return self._enter(is_async=False)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Stop the feed. Raises its error, unless the body has raised."""
        self._leave()
        self._feed.wait()
        if error is None:
            self._raise_error()

    def __iter__(self) -> Iterator[T_co]:
        """Yield each transaction that changes rows; with `ddl` each Ddl too. Raises the feed's error at its
        end."""
        return (item for items in self._received() for item in cast("Sequence[T_co]", items))

    # --- async for -------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start the feed. Raises ConfigError if its data directory can't be used."""
        return self._enter(is_async=True)

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        """Stop the feed. Raises its error, unless the body has raised."""
        self._leave()
        await asyncio.to_thread(self._feed.wait)
        if error is None:
            self._raise_error()

    async def __aiter__(self) -> AsyncIterator[T_co]:
        async for batch in self.batches():
            for item in batch:
                yield item

    def batches(self) -> AsyncIterator[list[T_co]]:
        """Yield lists of all waiting items, at least one. Ends with the feed; raises its error."""
        if self._handover is None or not self._is_async:
            raise UsageError("read a feed's batches inside `async with tidemill.open(...) as feed`")
        return self._batches(self._handover)

    async def _batches(self, handover: Handover) -> AsyncIterator[list[T_co]]:
        async for several in handover:
            yield [item for items in several for item in cast("Sequence[T_co]", items)]
        await asyncio.to_thread(self._feed.wait)
        self._raise_error()


class ArrowBatches(Generic[B_co]):
    """Changes as Arrow batches, in commit order, for one reader; made by `OpenFeed.arrow_batches`."""

    def __init__(
        self,
        received: Callable[[], Iterator[Sequence[Item]]],
        batches: Callable[[], AsyncIterator[Sequence[Item]]],
        invalid_dates: InvalidDates,
    ) -> None:
        """`received` and `batches` begin to read the feed, for `for` and for `async for`."""
        from .arrow_encoder import ArrowEncoder  # here, as it needs pyarrow

        self._received = received
        self._batches = batches
        self._encode = ArrowEncoder(invalid_dates).encode

    def __iter__(self) -> Iterator[B_co]:
        """Yield each batch. Raises the feed's error at its end."""
        received = self._received()  # an error is raised here, not at the first batch
        return (batch for items in received for batch in cast("Iterator[B_co]", self._encode(items)))

    async def __aiter__(self) -> AsyncIterator[B_co]:
        async for items in self._batches():
            for batch in cast("Iterator[B_co]", self._encode(items)):
                yield batch


class _Processed(Acknowledgements):
    """Acknowledgements that request flushes; many of them share one."""

    flush_is_due = False


class _Sink(PythonSink):
    """Notes that the requested flush is made, and tells what the program hasn't acknowledged."""

    def __init__(
        self,
        name: str,
        receive: Receiver,
        store: CheckpointStore,
        processed: _Processed,
        unacknowledged: Callable[[], list[Wait]],
        *,
        ddl: bool,
        reads_rows: bool,
    ) -> None:
        super().__init__(name, receive, store, acknowledgements=processed, ddl=ddl, reads_rows=reads_rows)
        self._processed = processed
        self._unacknowledged = unacknowledged

    def waits(self) -> list[Wait]:
        return self._unacknowledged()

    def flush(self) -> Checkpoint | None:
        self._processed.flush_is_due = False
        return super().flush()
