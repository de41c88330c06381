"""Times at which the simple protocol sends a table's definition again."""

from __future__ import annotations

from typing import Final

from ...events import Table
from ...events.per_table import PerTable
from .encoder import Milliseconds
from .options import SimpleOptions


class Bootstraps:
    """Counts rows and seconds since each table's definition was sent. It is due before the first rows, unless
    it is never sent again and a statement has told it."""

    def __init__(self, options: SimpleOptions, now: Milliseconds) -> None:
        self._rows: Final = options.send_bootstrap_in_msg_count
        self._milliseconds: Final = options.send_bootstrap_interval_in_sec * 1000
        self._now: Final = now
        self._sent: Final[PerTable[_Sent]] = PerTable(lambda _: _Sent())

    def due(self, table: Table, rows: int) -> bool:
        """Return True if the definition is to be sent before the next `rows` rows, which are counted."""
        sent, now = self._sent[table], self._now()
        if sent.at is None:
            is_due = not sent.is_told or bool(self._rows or self._milliseconds)
        else:
            is_due = bool(self._rows and sent.rows >= self._rows) or bool(
                self._milliseconds and now - sent.at >= self._milliseconds
            )
        if is_due:
            sent.at, sent.rows = now, 0
        sent.rows += rows
        return is_due

    def tell(self, table: Table) -> None:
        """Note that a statement told the definition. Consumers that begin later need it again."""
        self._sent[table].is_told = True


class _Sent:
    def __init__(self) -> None:
        self.at: int | None = None
        self.is_told = False
        self.rows = 0
