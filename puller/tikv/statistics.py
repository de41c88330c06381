"""Counts of a TiKV puller."""

from __future__ import annotations

from msgspec import Struct

from ...events import Ts


class TableStatistics(Struct, frozen=True):
    """Statistics of one table, or their minimum or sum over all tables."""

    regions: int
    """Number of parts of the table's keys, as reported by its regions."""
    ingress_commit_ts: Ts
    """Commit ts of the last change received; 0 before the first."""
    egress_commit_ts: Ts
    """Commit ts of the last change sent."""
    ingress_resolved_ts: Ts
    """Resolved ts of the last region that advanced."""
    egress_resolved_ts: Ts
    """Everything at or below this ts was sent."""
    changes: int
    """Number of changes sent."""
    fallen_back: int
    """Changes dropped because they were at or below the table's resolved ts; more than 0 indicates a bug."""
    since: float
    """Time of the last advance of `egress_resolved_ts`, by the clock's `now()`."""


class TikvStatistics(Struct, frozen=True):
    """Statistics of a puller."""

    tables: int
    total: TableStatistics
    """The maximum of commit ts, the minimum of resolved ts, the sum of counts over the tables."""
    slowest_table: int
    """Id of the table with the lowest resolved ts; 0 without tables."""
    stores: int
    streams: int
    initialising: int
    """Number of regions whose incremental scan is under way."""
    failures: dict[str, int]
    """Number of failed regions by reason, since the start."""
    locks_resolved: int
    """Number of abandoned transactions ended, counted once per region."""
    stale_events: int
    """Number of events dropped because their request is outdated or their region isn't requested."""
