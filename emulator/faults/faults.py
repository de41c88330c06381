"""What can go wrong in a cluster: one method each, and one word each as text (`words`)."""

from __future__ import annotations

from .locks import LockFaults
from .regions import RegionFaults
from .servers import ServerFaults
from .streams import StreamFaults
from .words import play


class Faults(RegionFaults, ServerFaults, StreamFaults, LockFaults):
    """Mixed into Cluster: thread-safe, each has taken effect when it returns."""

    def play(self, line: str) -> str:
        """One of these methods as text: see `words`; what there is to say of it."""
        return play(self, line)
