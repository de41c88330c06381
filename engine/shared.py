"""Resources that several feeds of a process share."""

from __future__ import annotations

from dataclasses import dataclass

from ..actors import Workers
from ..sorter.quota import MemoryQuota


@dataclass(frozen=True, slots=True)
class Shared:
    """Whoever makes them closes `compute` once no feed uses it any more."""

    compute: Workers
    """Threads that sort, merge and decode."""
    memory: MemoryQuota
    """Memory of the sorters, besides the bound that each feed has."""
