"""Faults of a cluster: one method each, and one word each as text (`words`)."""

from __future__ import annotations

from .locks import LockFaults
from .pumps import PumpFaults
from .regions import RegionFaults
from .servers import ServerFaults
from .streams import StreamFaults
from .words import play


class Faults(RegionFaults, ServerFaults, StreamFaults, LockFaults, PumpFaults):
    """The faults of a Cluster, as a mixin. Thread-safe; each has taken effect when it returns."""

    def play(self, line: str) -> str:
        """Call one of these methods given as text (see `words`); return its result as text."""
        return play(self, line)
