"""A function that takes items when it has room, called through handlers. Source: EntryEventSink of Canal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import Final

from ..events import Item
from .handlers import Handler

_FREE_ATTEMPTS: Final = 3
"""Attempts without a pause before them."""
_MAX_PAUSE_MS: Final = 10


class EventSink:
    """Calls `put` with items until it takes them. Used by one thread at a time, except for `interrupt`."""

    def __init__(self, put: Callable[[Sequence[Item]], object], handlers: Sequence[Handler] = ()) -> None:
        """`put` returns False if it took none of the items, and has no room for them now."""
        self._put = put
        self.handlers = list(handlers)
        """Called in this order; may be changed between calls of `sink`."""
        self._interrupted = Event()
        self.attempts = 0
        """Attempts at which the function had no room, so far."""
        self.paused_seconds = 0.0
        """Duration of the pauses between attempts, so far."""

    def sink(self, items: Sequence[Item]) -> bool:
        """Pass items on; return False if `interrupt` was called before they were taken: they come again."""
        for handler in self.handlers:
            items = handler.before(items)
        if not items:
            return True
        failures = 0
        while not self._interrupted.is_set():
            if self._put(items) is not False:
                for handler in self.handlers:
                    handler.after(items)
                return True
            failures += 1
            self.attempts += 1
            for handler in self.handlers:
                handler.retry(items)
            if failures > _FREE_ATTEMPTS:
                pause = min(failures, _MAX_PAUSE_MS) / 1000
                self.paused_seconds += pause
                self._interrupted.wait(pause)
        return False

    def interrupt(self) -> None:
        """End the call of `sink`, and later ones, with False until `resume`. Any thread."""
        self._interrupted.set()

    def resume(self) -> None:
        """Accept items again."""
        self._interrupted.clear()
