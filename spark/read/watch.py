"""A stream's requests to its source, in the driver."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Final, TypeVar

from ...actors import SystemClock
from ...errors import Retryable
from ..offsets.offset import Limit, Offset, Offsets
from ..offsets.offsets import open_offsets
from .options import ReadOptions

T = TypeVar("T")

AGAIN_SECONDS: Final = 0.5
"""Pause between attempts to reach a source."""


class Watch:
    """Sends requests to the source, with retries and a minimum interval. For one thread."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._clock = SystemClock()
        self._pause_seconds = options.poll_seconds or options.reading.pause_seconds
        self._next = 0.0
        self._offsets: Offsets | None = None
        self._checked = False

    def following(self, start: Offset, end: Offset | None, limit: Limit) -> Offset:
        """Return the end of the next batch; without new changes, the next call waits."""
        _wait(self._next - self._clock.now())
        offset = self.ask(lambda offsets: self._following(offsets, start, end, limit))
        if self._options.reading.by_ts or offset == start:  # a ts advances without changes, too
            self._next = self._clock.now() + self._pause_seconds
        return offset

    def _following(self, offsets: Offsets, start: Offset, end: Offset | None, limit: Limit) -> Offset:
        if not self._checked:
            offsets.check(start)
            self._checked = True
        return offsets.following(start, end, limit)

    def ask(self, question: Callable[[Offsets], T]) -> T:
        """Return the answer, with retries. Raises Retryable after the source's timeout, and Fatal."""
        until = self._clock.now() + self._options.source_timeout
        while True:
            try:
                if self._offsets is None:
                    self._offsets = open_offsets(self._options)
                return question(self._offsets)
            except Retryable as error:
                if self._clock.now() >= until:
                    raise
                _wait(max(AGAIN_SECONDS, error.wait or 0.0))

    def close(self) -> None:
        offsets, self._offsets = self._offsets, None
        if offsets is not None:
            offsets.close()


def _wait(seconds: float) -> None:
    if seconds > 0:
        Event().wait(seconds)
