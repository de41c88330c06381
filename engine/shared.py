"""Resources that several feeds of a process share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..actors import Workers
from ..sorter.quota import MemoryQuota

LOOK_PART_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Shared:
    """Made and closed by their owner: `compute` once no feed uses it any more."""

    compute: Workers
    """Threads that sort, merge and decode."""
    memory: MemoryQuota
    """Memory of the sorters, besides the bound that each feed has."""

    @property
    def look_seconds(self) -> float:
        """Least time between two updates of a feed's status: those of all feeds together take 5 % of
        a core, at about 0.5 ms each."""
        return LOOK_PART_SECONDS * self.memory.members
