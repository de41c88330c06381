"""Reports of region workers to the event feed: from the workers' threads to the loop's."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from .error_table import Reaction
from .request import Request

if TYPE_CHECKING:
    from .store_stream import StoreStream


class Initialised(Struct, frozen=True):
    """The request's incremental scan is complete."""

    request: Request


class RegionBroken(Struct, frozen=True):
    """The region ended with an error. `by_store` is True if the store has dropped the request."""

    request: Request
    action: Reaction
    by_store: bool = True


class Lost(Struct, frozen=True):
    """A stream ended with the requests on it."""

    stream: StoreStream
    requests: list[Request]
    action: Reaction


class FatalReport(Struct, frozen=True):
    """The feed can't continue."""

    error: BaseException


Report: TypeAlias = Initialised | RegionBroken | Lost | FatalReport


class RegionReports:
    """Delivers reports to `receive` in the loop's thread, in order, with one wake-up for all that wait.

    Bounded by the number of requests: each is initialised once and ends once.
    """

    def __init__(
        self, call: Callable[[Callable[[], object]], object], receive: Callable[[list[Report]], None]
    ) -> None:
        """`call` has a function called in the loop's thread, unless that is stopped."""
        self._call = call
        self._receive = receive
        self._lock = Lock()
        self._waiting: list[Report] = []

    def put(self, report: Report) -> None:
        """Send a report. Thread-safe; does nothing after the loop is closed."""
        with self._lock:
            self._waiting.append(report)
            first = len(self._waiting) == 1
        if first:
            self._call(self._drain)

    def _drain(self) -> None:
        with self._lock:
            reports, self._waiting = self._waiting, []
        self._receive(reports)
