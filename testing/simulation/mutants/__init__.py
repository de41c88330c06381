"""Bugs to plant, one at a time: each must be found."""

from __future__ import annotations

from typing import Final

from .binlog import BINLOG
from .cluster import CLUSTER
from .engine import ENGINE
from .loads import LOADS
from .mounter import MOUNTER
from .mutant import Mutant
from .puller import PULLER
from .sink import SINK
from .sorter import SORTER

MUTANTS: Final[tuple[Mutant, ...]] = (
    *PULLER,
    *CLUSTER,
    *SORTER,
    *MOUNTER,
    *LOADS,
    *SINK,
    *ENGINE,
    *BINLOG,
)
SIMULATED: Final = tuple(one for one in MUTANTS if not one.killed_by)
"""Bugs that seeds look for."""
