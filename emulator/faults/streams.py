"""Change feed streams that end, stall, or lack some messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..parts import Parts


class StreamFaults(Parts):
    """Faults of streams. Thread-safe; store 0 means all stores."""

    def drop_streams(self, store: int = 0) -> int:
        """End the change feed streams of a store, or all; return their number."""
        return self._each_connection(store, lambda connection: connection.end("drop"))

    def cut_streams(self, store: int = 0) -> int:
        """End them in the middle of their next batch of changes: its first half is sent."""
        return self._each_connection(store, lambda connection: connection.end("half"))

    def pause_streams(self, store: int = 0) -> int:
        """Hold back all messages until `resume_streams` or congestion."""
        return self._each_connection(store, lambda connection: connection.pause(True))

    def resume_streams(self, store: int = 0) -> int:
        return self._each_connection(store, lambda connection: connection.pause(False))

    def hold_scans(self, store: int = 0, pieces: int = 0) -> None:
        """Keep registrations uninitialised until `free_scans`.

        Their scans do not begin or, with `pieces`, stop after that many batches (of `scan_rows` rows each).
        """
        self._call(self._hold, store, pieces)

    def free_scans(self, store: int = 0) -> None:
        self._call(self._hold, store, None)

    def _hold(self, store: int, pieces: int | None) -> None:
        for each in self._stores(store):
            each.change_data.scans.hold(pieces)

    def pause_resolved(self) -> None:
        """Stop the periodic resolved ts until `resume_resolved`."""
        self.resolved.paused = True

    def resume_resolved(self) -> None:
        self.resolved.paused = False

    def _each_connection(self, store: int, do: Callable[[Any], None]) -> int:
        def each() -> int:
            connections = [c for s in self._stores(store) for c in s.change_data.connections]
            for connection in connections:
                do(connection)
            return len(connections)

        return self._call(each)
