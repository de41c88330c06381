"""Pumps that are late, silent or cut, or send binlogs twice or out of order."""

from __future__ import annotations

from ..parts import Parts
from ..pump import Pump
from ..pumps import STATES


class PumpFaults(Parts):
    """Faults of pumps, which are named by node id. Thread-safe."""

    def _pump(self, pump: str) -> Pump:
        if pump not in self.pumps.by_id:
            known = ", ".join(self.pumps.by_id) or "none"
            raise ValueError(f"pump: there is none called {pump!r}; there are: {known}")
        return self.pumps.by_id[pump]

    def _set(self, pump: str, name: str, value: object) -> None:
        def change() -> None:
            server = self._pump(pump)
            setattr(server.faults, name, value)
            server.wake()

        self._call(change)

    def pump_late(self, pump: str, seconds: float) -> None:
        """Delay every binlog by `seconds`; 0 ends it."""
        self._set(pump, "late_seconds", seconds)

    def pump_silent(self, pump: str) -> None:
        """Send nothing until `pump_speaks`."""
        self._set(pump, "silent", True)

    def pump_speaks(self, pump: str) -> None:
        self._set(pump, "silent", False)

    def pump_duplicates(self, pump: str, count: int) -> None:
        """Send the next binlogs twice, the second time after later ones."""
        self._set(pump, "duplicates", count)

    def pump_disorders(self, pump: str) -> None:
        """Let two later binlogs change places, once."""
        self._set(pump, "disordered_after", self._call(lambda: self.oracle.last))

    def pump_half(self, pump: str) -> None:
        """Cut the stream in the middle of the next binlogs."""
        self._set(pump, "cut", True)

    def pump_payload(self, pump: str, payload: bytes) -> None:
        """Replace the payload of the next binlog."""
        self._set(pump, "payload", payload)

    def pump_cluster(self, pump: str, cluster_id: int) -> None:
        """Let a pump belong to another cluster."""
        self._call(lambda: setattr(self._pump(pump), "cluster_id", cluster_id))

    def pump_state(self, pump: str, state: str) -> None:
        """Set a pump's state in the registry: online, pausing, paused, closing or offline."""
        if state not in STATES:
            raise ValueError(f"pump_state: {state!r}; one of {', '.join(STATES)}")
        self._call(lambda: setattr(self._pump(pump), "state", state))

    def pump_down(self, pump: str) -> None:
        """Close a pump's port and cut its streams."""
        self._loop.run(self._pump(pump).server.stop())

    def pump_up(self, pump: str) -> None:
        """Start it again, on its former port."""
        if not self._pump(pump).server.up:
            self._loop.run(self._pump(pump).server.start())
