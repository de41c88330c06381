"""Safe mode for tables whose rows the target doesn't keep together with the checkpoint.

Such a table of MySQL or MariaDB, as of the engines MyISAM and Aria, isn't rolled back: after a crash, a lost
connection or a rejected statement it has rows of transactions that come again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final

from ...dialects.database import Database
from ...errors import SinkError
from ...events import Table, Ts, compose_ts, physical_ms
from ..safe_mode import AFTER_START, SafeMode

MARGIN_SECONDS: Final = 60.0
"""Maximum difference between the clocks of the source and of this machine that is covered."""


class AfterStart:
    """Enters safe mode once for each such table, until the checkpoint has passed all that may be there.

    A transaction that was applied before is older than the start, by the source's clock. Several connections
    share it.
    """

    def __init__(self, safe_mode: SafeMode, time: Callable[[], float]) -> None:
        """`time` is in Unix seconds."""
        self._safe_mode = safe_mode
        self._time = time
        self._lock = Lock()
        self._until: Ts = 0
        self._kept: dict[str, bool] = {}  # by full name
        self._entered = 0

    def begin(self, ts: Ts) -> None:
        """Note that transactions may come again: some of those before now, or the one at `ts`."""
        with self._lock:
            now_ms = int(max(self._time() * 1000, physical_ms(ts)) + MARGIN_SECONDS * 1000)
            self._until = max(self._until, compose_ts(now_ms))
            self._count()

    def look(self, target: Database, tables: Iterable[Table]) -> None:
        """Look at tables that are about to be changed.

        Raises SinkError for one that isn't rolled back and has no key to find its rows again.
        """
        last: Table | None = None
        for table in tables:
            if table is last:  # mostly the next run is of the same table
                continue
            last, name = table, table.full_name
            if name in self._kept:
                continue
            kept = target.tables.keeps_rows(table)
            if not kept and not table.key:
                name_here = target.tables.name_of(table.schema, table.name)
                raise SinkError(
                    f"{target.identity}: table {name_here} has no key, and "
                    "its engine no transactions, so after a crash rows would be there twice: give it the "
                    "engine InnoDB",
                    name,
                )
            with self._lock:
                self._kept[name] = kept
                self._count()

    def passed(self, ts: Ts) -> None:
        """Note that the checkpoint is at `ts`."""
        if self._until and ts >= self._until:
            with self._lock:
                self._until = 0
                self._count()

    def forget(self) -> None:
        """Look at all tables again when they come next."""
        with self._lock:
            self._kept.clear()

    def _count(self) -> None:
        wanted = list(self._kept.values()).count(False) if self._until else 0
        for _ in range(self._entered, wanted):
            self._safe_mode.enter(AFTER_START)
        for _ in range(wanted, self._entered):
            self._safe_mode.leave(AFTER_START)
        self._entered = wanted
