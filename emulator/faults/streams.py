"""Change feed streams that end, stall, or say nothing of some things. Thread-safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..parts import Parts


class StreamFaults(Parts):
    """Store 0 means all stores."""

    def drop_streams(self, store: int = 0) -> int:
        """Cut the change feed streams of a store, or all; how many."""
        return self._each_connection(store, lambda connection: connection.end("drop"))

    def cut_streams(self, store: int = 0) -> int:
        """Cut them in the middle of their next batch of changes: its first half arrives."""
        return self._each_connection(store, lambda connection: connection.end("half"))

    def pause_streams(self, store: int = 0) -> int:
        """Let what is to be sent wait, until `resume_streams` or congestion."""
        return self._each_connection(store, lambda connection: connection.pause(True))

    def resume_streams(self, store: int = 0) -> int:
        return self._each_connection(store, lambda connection: connection.pause(False))

    def hold_scans(self, store: int = 0, pieces: int = 0) -> None:
        """Let registrations wait uninitialised until `free_scans`.

        Their scans do not begin or, with `pieces`, wait after so many (of `scan_rows` rows each).
        """
        self._call(self._hold, store, pieces)

    def free_scans(self, store: int = 0) -> None:
        self._call(self._hold, store, None)

    def _hold(self, store: int, pieces: int | None) -> None:
        for each in self._stores(store):
            each.change_data.scans.hold(pieces)

    def pause_resolved(self) -> None:
        """Send no resolved ts by itself until `resume_resolved`."""
        self.resolved.paused = True

    def resume_resolved(self) -> None:
        self.resolved.paused = False

    def _each_connection(self, store: int, do: Callable[[Any], None]) -> int:
        def each() -> int:
            found = [c for s in self._stores(store) for c in s.change_data.connections]
            for connection in found:
                do(connection)
            return len(found)

        return self._call(each)
