"""Recording of syncpoints, while nothing is being applied."""

from __future__ import annotations

from collections.abc import Callable

from ...dialects.database import Database
from ...dialects.syncpoints import Syncpoints
from ...events import Checkpoint


class SyncpointWriter:
    """Records a syncpoint at an interval, in SQL transactions of its own. Used by the sink's thread."""

    def __init__(
        self, database: Database, seconds: float, keep_seconds: int, now: Callable[[], float]
    ) -> None:
        self._database = database
        self._points = Syncpoints(database.own_tables, database.feed)
        self._seconds = seconds
        self._keep_seconds = keep_seconds
        self._now = now
        self._next = 0.0
        self._last = -1

    def open(self) -> None:
        """Create the table if it is missing; the connection has no open transaction."""
        if not self._points.exist():
            self._database.begin()
            self._points.create()
            self._database.commit()
        last = self._points.last()
        self._last = -1 if last is None else last.primary_ts

    @property
    def is_due(self) -> bool:
        return self._now() >= self._next

    def record(self, checkpoint: Checkpoint) -> None:
        """Record the durable checkpoint, unless tables are at other positions or it is recorded already.

        The second transaction lets comparisons look: it waits while one of them has locked an earlier
        syncpoint. Called once everything is durable and no transaction is open.
        """
        self._next = self._now() + self._seconds
        if not checkpoint.is_uniform or checkpoint.ts <= self._last:
            return
        self._database.begin()
        self._points.record(checkpoint.ts, checkpoint.position)
        self._database.commit()
        self._last = checkpoint.ts
        self._database.begin()
        self._points.forget(checkpoint.ts, self._keep_seconds)
        self._database.commit()
