"""Callbacks that tests wait for."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from tidemill.testing.progress import happened


class Waited:
    """Waits by its own account, and calls `between` instead of letting time pass."""

    def __init__(self, between: Callable[[], None] = lambda: None) -> None:
        self.count = 0
        self._between = between

    def __call__(self) -> None:
        self.count += 1
        self._between()


class Outcome:
    """Keeps what a callback was called with, once."""

    def __init__(self) -> None:
        self._called = Event()
        self._value: object = None

    def __call__(self, value: object) -> None:
        assert not self._called.is_set()
        self._value = value
        self._called.set()

    @property
    def came(self) -> bool:
        return self._called.is_set()

    def get(self) -> object:
        happened(self._called)
        return self._value
