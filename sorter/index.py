"""The runs on disk, and their places."""

from __future__ import annotations

from typing import Any

from .run import BlockLocation, SortRun


class RunIndex:
    """The unread runs of each generation: about 400 bytes of memory for a block of 1,000 changes.

    Guarded by the Tier's lock.
    """

    def __init__(self) -> None:
        self._runs: dict[Any, dict[SortRun, None]] = {}
        self._live_bytes: dict[Any, int] = {}
        self.memory_bytes = 0
        """Bytes that the runs would take in memory."""

    def add(self, run: SortRun, place: BlockLocation) -> None:
        run.place = place
        window = place.window
        self._runs.setdefault(window, {})[run] = None
        self._live_bytes[window] = self._live_bytes.get(window, 0) + place.bytes
        self.memory_bytes += run.bytes

    def remove(self, run: SortRun) -> None:
        place = run.place
        if place is None:
            return
        run.place = None
        window = place.window
        runs = self._runs[window]
        del runs[run]
        self._live_bytes[window] -= place.bytes
        if not runs:
            del self._runs[window], self._live_bytes[window]
        self.memory_bytes -= run.bytes

    def live_bytes(self, window: object) -> int:
        """Return the bytes of a generation that are still to be read."""
        return self._live_bytes.get(window, 0)

    def runs(self, window: Any) -> list[SortRun]:
        return list(self._runs.get(window, ()))
