"""Numbers of rows in their transactions."""

from __future__ import annotations

from ...events import Transaction


class RowNumbers:
    """Numbers the rows of each commit ts from 0, over all parts of a transaction. Not thread-safe."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Forget an unfinished transaction: it comes again from its first row."""
        self._ts, self._next = 0, 0

    def first(self, item: Transaction) -> int:
        """Return the number of the first row of a transaction, or of a part of one."""
        found = self._next if item.commit_ts == self._ts else 0
        self._ts, self._next = item.commit_ts, found + len(item.rows)
        return found
