"""Times at which the simple protocol sends a table's definition again."""

from __future__ import annotations

from typing import Final

from ...events import Table
from ...events.per_table import PerTable
from .encoder import Milliseconds
from .options import SimpleOptions


class Bootstraps:
    """Counts rows and seconds since each table's definition was sent. It is due before the first rows."""

    def __init__(self, options: SimpleOptions, now: Milliseconds) -> None:
        self._rows: Final = options.send_bootstrap_in_msg_count
        self._milliseconds: Final = options.send_bootstrap_interval_in_sec * 1000
        self._now: Final = now
        self._sent: Final[PerTable[_Sent]] = PerTable(lambda _: _Sent())

    def due(self, table: Table, rows: int) -> bool:
        """Return True if the definition is to be sent before the next `rows` rows, which are counted."""
        if not self._rows and not self._milliseconds:
            return False
        sent, now = self._sent[table], self._now()
        found = (
            sent.at is None
            or bool(self._rows and sent.rows >= self._rows)
            or bool(self._milliseconds and now - sent.at >= self._milliseconds)
        )
        if found:
            sent.at, sent.rows = now, 0
        sent.rows += rows
        return found


class _Sent:
    def __init__(self) -> None:
        self.at: int | None = None
        self.rows = 0
