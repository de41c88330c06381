"""Resources that several feeds of a process share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..actors import Workers
from ..sorter.quota import MemoryQuota

LOOK_PART_SECONDS: Final = 0.01
_PACE_PART: Final = 0.01
_MOST_PACE: Final = 3.0
"""A source that is heard less often would count as one that isn't read to its end."""
_ROWLESS_SECONDS: Final = 1.0
_ROWLESS_PART_SECONDS: Final = 0.004
_MOST_ROWLESS_SECONDS: Final = 4.0
"""Below the age at which a resolved ts that isn't stored counts as lag."""


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
        return LOOK_PART_SECONDS * self.compute.systems

    @property
    def pace(self) -> float:
        """How many times as long as alone an idle source rests."""
        return min(_MOST_PACE, max(1.0, _PACE_PART * self.compute.systems))

    @property
    def rowless_seconds(self) -> float:
        """Least time between two checkpoints of a sink without rows: of all feeds 250 a second, at about
        0.5 ms each."""
        seconds = _ROWLESS_PART_SECONDS * self.compute.systems
        return min(_MOST_ROWLESS_SECONDS, max(_ROWLESS_SECONDS, seconds))
