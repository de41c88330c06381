"""How far each pump has been pulled; read from any thread."""

from __future__ import annotations

from ...events import Ts
from .pumps import State


class PumpProgress:
    """Counts of one pump, each written in one actor's turns only."""

    __slots__ = (
        "binlogs",
        "bytes",
        "connected_at",
        "disordered",
        "duplicates",
        "host",
        "jobs_since",
        "last",
        "node_id",
        "retries",
        "since",
        "state",
        "unsorted",
    )

    def __init__(self, node_id: str, host: str, state: State, last: Ts, now: float) -> None:
        self.node_id = node_id
        self.host = host
        self.state = state
        self.last = last
        """Commit ts of its last binlog, or the ts from which it is pulled."""
        self.since = now
        """Time at which `last` was reached, by the clock's `now()`."""
        self.binlogs = 0
        self.bytes = 0
        self.retries = 0
        self.connected_at = 0.0
        """Time of the first message of the present stream; 0 without one."""
        self.unsorted = 0
        """Binlogs that came after a later one."""
        self.duplicates = 0
        """Binlogs that were delivered before, and dropped."""
        self.disordered = 0
        """Binlogs below what was delivered already, which are lost."""
        self.jobs_since: dict[int, float] = {}
        """DDL jobs that aren't in the cluster's job history yet, with the time since when they are waited
        for."""

    @property
    def name(self) -> str:
        return f"pump {self.node_id}" if self.node_id == self.host else f"pump {self.node_id} ({self.host})"


class BinlogMergeProgress:
    """How far all pumps together have come. Written in the Collector's turns only; any thread may read it, as
    its values are replaced as a whole or only grow."""

    def __init__(self, ts: Ts) -> None:
        self.merged = ts
        """Everything at or below this ts may leave the sorter."""
        self.pumps: tuple[PumpProgress, ...] = ()
        """The pumps that aren't offline."""
        self.applied: dict[int, None] = {}
        """Ids of the applied DDL jobs, oldest first."""

    def slowest(self) -> PumpProgress | None:
        """Return the pump that the others wait for; None if none has anything to wait with."""
        pumps = self.pumps
        slowest = min(pumps, key=lambda pump: pump.last, default=None)
        if slowest is None or all(pump.last == slowest.last for pump in pumps):
            return None
        return slowest
