"""What region workers tell the event feed: from the workers' threads to the loop's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from .error_table import Action
from .request import Request

if TYPE_CHECKING:
    from .store_stream import StoreStream


class Initialised(Struct, frozen=True):
    """The request's incremental scan is over."""

    request: Request


class Broken(Struct, frozen=True):
    """The region ended with an error. `by_store`: the store has forgotten the request."""

    request: Request
    action: Action
    by_store: bool = True


class Lost(Struct, frozen=True):
    """A stream ended, with what was asked for on it."""

    stream: StoreStream
    requests: list[Request]
    action: Action


class FatalReport(Struct, frozen=True):
    """The feed can't go on."""

    error: BaseException


Report: TypeAlias = Initialised | Broken | Lost | FatalReport


class Reports:
    """Carries reports to `receive` in the loop's thread, in order; one wake-up for all that wait.

    Bounded by what it is about: each request is initialised once and ends once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Callable[[list[Report]], None]) -> None:
        self._loop = loop
        self._receive = receive
        self._lock = Lock()
        self._waiting: list[Report] = []

    def put(self, report: Report) -> None:
        """From any thread. Nothing happens once the loop is closed."""
        with self._lock:
            self._waiting.append(report)
            first = len(self._waiting) == 1
        if first:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        with self._lock:
            reports, self._waiting = self._waiting, []
        self._receive(reports)
