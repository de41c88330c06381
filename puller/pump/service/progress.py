"""A drainer's progress, as its status and metrics show it."""

from __future__ import annotations

from msgspec import Struct


class DrainerProgress(Struct, frozen=True, kw_only=True):
    """Counters count from the start of this process."""

    pump_positions: dict[str, int]
    """Commit ts of the last binlog received, by the pump's node id."""
    commit_ts: int
    """Commit ts up to which everything has been applied."""
    checkpoint_ts: int
    """Commit ts of the last stored checkpoint."""
    last_success: float
    """Time, by the clock's `now()`, at which the last transaction was applied; the start before that."""
    ts_map: str = ""
    """Pair of timestamps of source and target at which both have the same rows, as text."""
    disorders: int = 0
    """Number of binlogs that came with a commit ts below one before them."""
    events: dict[str, int] = {}
    """Number of row changes and schema changes: by Insert, Update, Delete, DDL."""
    errors: dict[str, int] = {}
    """Number of errors, by kind."""
    ddl_jobs: int = 0
