"""Random faults of pumps by a seed: the same seed draws the same faults in the same order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from ..cluster import Cluster
from ..pump import Pump

MOST_PUMPS = 6


class PumpSchedule:
    """Draws a fault at each step and counts the effective ones. Not thread-safe.

    Whatever it draws, no binlog is lost: those that a pump sends are above what all pumps have sent.
    """

    def __init__(self, cluster: Cluster, seed: int, notify: Callable[[], object]) -> None:
        """`notify` tells the drainers of a pump that joins, and returns once they know of it."""
        self._cluster = cluster
        self._notify = notify
        self._random = Random(seed)
        self._all: dict[str, Callable[[], bool]] = {
            "late": self._late,
            "silent": self._silent,
            "duplicate": self._duplicate,
            "half": self._half,
            "down": self._down,
            "join": self._join,
            "pause": self._pause,
            "leave": self._leave,
        }
        self.hits: Counter[str] = Counter()

    def step(self) -> str:
        """Draw and execute a fault; return its word."""
        word = self._random.choice(list(self._all))
        self.hits[word] += self._all[word]()
        return word

    def calm(self) -> None:
        """End all faults; pumps that were leaving stay."""
        cluster = self._cluster
        for name, pump in cluster.pumps.by_id.items():
            cluster.pump_up(name)
            cluster.pump_speaks(name)
            cluster.pump_late(name, 0)
            if pump.state != "offline":
                cluster.pump_state(name, "online")

    # --- the faults; each says whether it met something

    def _a_pump(self) -> Pump:
        return self._random.choice(list(self._cluster.pumps.by_id.values()))

    def _late(self) -> bool:
        pump = self._a_pump()
        self._cluster.pump_late(pump.node_id, 0 if pump.faults.late_seconds else 0.01)
        return True

    def _silent(self) -> bool:
        pump = self._a_pump()
        silent = pump.faults.silent
        (self._cluster.pump_speaks if silent else self._cluster.pump_silent)(pump.node_id)
        return not silent

    def _duplicate(self) -> bool:
        self._cluster.pump_duplicates(self._a_pump().node_id, self._random.randint(1, 20))
        return True

    def _half(self) -> bool:
        self._cluster.pump_half(self._a_pump().node_id)
        return True

    def _down(self) -> bool:
        pump = self._a_pump()
        up = pump.server.up
        (self._cluster.pump_down if up else self._cluster.pump_up)(pump.node_id)
        return up

    def _join(self) -> bool:
        room = len(self._cluster.pumps.by_id) < MOST_PUMPS
        if room:
            pump = self._cluster.add_pump(serving=False)
            self._notify()
            pump.serving = True
        return room

    def _pause(self) -> bool:
        """Pause a pump, or put it online again: the last one that is online stays."""
        pump = self._a_pump()
        if pump.state == "online" and self._online() > 1:
            self._cluster.pump_state(pump.node_id, "paused")
            return True
        if pump.state == "paused":
            self._cluster.pump_state(pump.node_id, "online")
        return False

    def _leave(self) -> bool:
        """Let a pump close: it gets no more binlogs."""
        pump = self._a_pump()
        if pump.state != "online" or self._online() == 1:
            return False
        self._cluster.pump_state(pump.node_id, "closing")
        return True

    def _online(self) -> int:
        return sum(pump.state == "online" for pump in self._cluster.pumps.by_id.values())
