"""Handlers around a function that takes items. Source: CanalEventDownStreamHandler."""

from __future__ import annotations

from collections.abc import Sequence

from ..events import Ddl, Item, physical_ms


class Handler:
    """Steps before a function takes items, at each failed attempt, and after; does nothing by itself."""

    def before(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items that go on, in order."""
        return items

    def retry(self, items: Sequence[Item]) -> None:
        """Note that the function didn't take the items, and is called again."""

    def after(self, items: Sequence[Item]) -> None:
        """Note that the function took the items."""


class EmptyTransactions(Handler):
    """Drops lists of items without rows and schema changes, save one in a while.

    One passes once more than `max_dropped` were dropped since the last that passed, or if more than
    `max_seconds` of the source's time have passed since. Source: filterEmptyTransaction of Canal.
    """

    def __init__(self, max_dropped: int = 8192, max_seconds: float = 5.0) -> None:
        self._max_dropped = max_dropped
        self._max_ms = max_seconds * 1000
        self._last_ms = 0
        """Time of the last list that passed."""
        self._since = 0
        """Lists dropped since then."""
        self.dropped = 0
        """Lists dropped so far."""

    def before(self, items: Sequence[Item]) -> Sequence[Item]:
        if not items:
            return items
        at_ms = physical_ms(items[0].commit_ts)
        is_empty = not any(isinstance(item, Ddl) or item.rows for item in items)
        if is_empty and self._since < self._max_dropped and abs(at_ms - self._last_ms) <= self._max_ms:
            self._since += 1
            self.dropped += 1
            return ()
        self._last_ms, self._since = at_ms, 0
        return items
