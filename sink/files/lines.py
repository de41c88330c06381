"""The protocol of lines, and the numbers of rows in them."""

from __future__ import annotations

from typing import Protocol

from ...events import Item, Transaction, Ts


class Lines(Protocol):
    """Forms the lines of a file. Called only by its sink."""

    has_definitions: bool
    """True if `of` takes a Ddl with ChangeDetails."""

    def start(self) -> None:
        """Forget unfinished transactions: they come again from their first row."""

    def of(self, item: Item) -> bytes:
        """Return the lines of an item, each with its end. Raises NotEncodable."""
        ...

    def watermark(self, ts: Ts) -> bytes:
        """Return the lines that say that all changes up to `ts` were written; empty if there are no such."""
        ...


class RowNumbers:
    """Numbers the rows of each commit ts from 0, over all parts of a transaction. Not thread-safe."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Forget an unfinished transaction: it comes again from its first row."""
        self._ts, self._next = 0, 0

    def first(self, item: Transaction) -> int:
        """Return the number of the first row of a transaction, or of a part of one."""
        first = self._next if item.commit_ts == self._ts else 0
        self._ts, self._next = item.commit_ts, first + len(item.rows)
        return first
