"""Removal of old files of TiCDC's layout, by the days that name their folders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ...events import Ts
from .names import HIDDEN, date_of, day_of
from .store import Store

_FILE: Final = re.compile(r"([^/]+/\d+/(\d{4}-\d\d-\d\d))/(?:meta/)?CDC[^/]*")
"""A file below its schema's folder: the folder of its day, and the day."""
_DAY: Final = 86_400_000 << 18
"""A day as a difference of commit timestamps."""


class Expiry:
    """Finds the folders of days that are longer before the checkpoint's than a number of days, once for each
    day of the checkpoint. Called only by its sink."""

    def __init__(self, store: Store, days: int) -> None:
        """With 0 days, nothing expires."""
        self._store: Final = store
        self._days: Final = days
        self._last: int | None = None
        """Day for which all folders that expired by it are removed."""

    def folders(self, ts: Ts) -> set[str]:
        """Return the folders that have expired by a checkpoint's ts. Raises as Store does."""
        if not self._days or day_of(ts) == self._last:
            return set()
        oldest = date_of(max(ts - self._days * _DAY, 0))
        return {folder for folder, date in self._dated() if date < oldest}

    def done(self, ts: Ts) -> None:
        """Note that the folders are removed."""
        self._last = day_of(ts)

    def _dated(self) -> Iterator[tuple[str, str]]:
        for schema in self._store.entries():
            if schema != HIDDEN:
                for name in self._store.names(schema):
                    if found := _FILE.fullmatch(name):
                        yield f"{schema}/{found[1]}", found[2]
