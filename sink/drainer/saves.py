"""When a drainer saves its checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

SAVE_SECONDS: Final = 3.0
"""Time after a save within which only an urgent success is saved."""


class Save(Protocol):
    def __call__(self, commit_ts: int, secondary_ts: int, *, schema_version: int) -> None: ...


class SaveSchedule:
    """Saves the highest commit ts that was applied: at once, after SAVE_SECONDS, or at the end."""

    def __init__(self, save: Save, now: Callable[[], float]) -> None:
        self._save = save
        self._now = now
        self._ts = self._saved_ts = self._schema_version = 0
        self._saved_at = now()

    @property
    def ts(self) -> int:
        """Highest commit ts applied."""
        return self._ts

    @property
    def saved_ts(self) -> int:
        """Highest commit ts saved; 0 before the first save."""
        return self._saved_ts

    def success(self, ts: int, *, ddl: bool = False, applied_ts: int = 0, schema_version: int = 0) -> None:
        """A transaction was applied; `applied_ts`, above 0, is a ts of the target at which it was there.

        A DDL, or one with an applied ts, is urgent: a repetition of the DDL is avoided, and the pair of
        timestamps is exact only now.
        """
        self._ts = max(self._ts, ts)
        self._schema_version = max(self._schema_version, schema_version)
        urgent = ddl or applied_ts > 0
        if self._ts > self._saved_ts and (urgent or self._now() - self._saved_at > SAVE_SECONDS):
            self._do(applied_ts)

    def finish(self) -> None:
        """Save what isn't saved yet."""
        if self._ts > self._saved_ts:
            self._do(0)

    def _do(self, applied_ts: int) -> None:
        self._save(self._ts, applied_ts, schema_version=self._schema_version)
        self._saved_ts, self._saved_at = self._ts, self._now()
