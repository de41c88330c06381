"""A feed that a test runs in its own process, and waits for by its progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from ..actors import SystemClock
from ..chain import Stage
from ..embedded import follow
from ..embedded.arguments import SinkArgument, SourceArgument, read_arguments
from ..engine.opening import open_source
from ..engine.status import FeedStatus
from ..errors import TidemillError
from ..events import Item, RowChange, Transaction
from .progress import eventually, moved

T = TypeVar("T")


@runtime_checkable
class Emulated(Protocol):
    """An emulated database, or another server that knows its URL."""

    @property
    def url(self) -> str: ...


class LiveFeed:
    """A feed of `source` into lists of this object, and into `sinks`; leaving `with` stops it.

    `source` is an emulated database, or what `tidemill.follow` takes.
    """

    def __init__(
        self,
        source: Emulated | SourceArgument,
        tables: Sequence[str],
        *,
        data_dir: Path,
        receive: Callable[[Item], object] = lambda _: None,
        sinks: Sequence[SinkArgument] = (),
        stages: Sequence[Stage] = (),
        source_options: Mapping[str, object] | None = None,
    ) -> None:
        """`receive` is called with each item, in the feed's thread; what it raises ends the feed. `stages`
        are before `receive`. Raises ConfigError."""
        self.items: list[Item] = []
        """Transactions that change rows, and schema changes, in the order in which they were received."""
        self._receive = receive
        self._arguments: dict[str, Any] = {
            "data_dir": data_dir,
            "sinks": sinks,
            "source_options": source_options,
        }
        self._source = source.url if isinstance(source, Emulated) else source
        self._tables, self._stages = tables, stages
        self._error_is_expected = False
        self._start()

    @property
    def rows(self) -> list[RowChange]:
        """The changes of rows of all items."""
        return [row for item in [*self.items] if isinstance(item, Transaction) for row in item.rows]

    def status(self) -> FeedStatus:
        return self._handle.status()

    def until(self, condition: Callable[[], T]) -> T:
        """Return what `condition` returns once that is true.

        Raises the feed's error if it fails before, and Stalled if nothing moves for two minutes.
        """

        def met() -> T:
            value = condition()
            if not value and self._handle.wait(0):
                value = condition()  # it may have become true at the feed's end
                if not value:
                    raise AssertionError("the feed has ended, and the condition isn't met")
            return value

        return self._eventually(met)

    def caught_up(self) -> None:
        """Wait until everything that the source has now is received, and durable in every sink.

        Raises as `until` does.
        """
        options, _ = read_arguments(
            self._source, self._tables, name="tidemill", until=None, sorter=None, **self._arguments
        )
        with closing(open_source(options, SystemClock())) as source:
            end = source.rank(source.look().end)
        self.until(
            lambda: all(
                sink.position and not sink.loading and source.rank(sink.position) >= end
                for sink in self.status().sinks
            )
        )

    def failure(self) -> TidemillError:
        """Wait until the feed fails, and return its error: it is expected, and not raised at the end."""
        self._error_is_expected = True

        def failed() -> TidemillError | None:
            try:
                if self._handle.wait(0):
                    raise AssertionError("the feed has ended without an error")
            except TidemillError as error:
                return error
            return None

        error = self._eventually(failed)
        assert error is not None
        return error

    def _eventually(self, condition: Callable[[], T]) -> T:
        return eventually(condition, sign=lambda: (len(self.items), moved(self.status())))

    def stop(self) -> None:
        """Stop the feed. Idempotent. Raises its error, unless `failure` returned it."""
        self._handle.stop()
        try:
            self._handle.wait()
        except TidemillError:
            if not self._error_is_expected:
                raise

    def restart(self) -> None:
        """Stop the feed, and start it at its last checkpoint, with the items received so far."""
        self.stop()
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except TidemillError:
            if error is None:
                raise

    def _start(self) -> None:
        self._handle = follow(
            self._take,
            self._source,
            self._tables,
            stages=self._stages,
            ddl=True,
            block=False,
            **self._arguments,
        )

    def _take(self, item: Item) -> None:
        self._receive(item)
        self.items.append(item)
