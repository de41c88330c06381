"""Options of the event feed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFeedOptions:
    """Options of the event feed. The defaults are TiCDC's where it has the same option (its puller
    document)."""

    region_scan_limit: int = 40
    """Maximum number of concurrent incremental scans per store."""
    region_batch: int = 20
    """Regions per request to PD when a span is divided."""
    region_retry_seconds: float = 60.0
    """Retry deadline for PD's regions of a span to cover it without gaps; then the feed fails."""
    mailbox: int = 128
    """Capacity of the mailbox of a region worker, a shard worker or a SpanPuller."""
    shard_workers: int = 8
    """Actors that share the regions of a store while its region worker is far behind."""
    high_water: float = 0.7
    """Fill level of its mailbox (0 to 1) above which a region worker shares its work ..."""
    low_water: float = 0.2
    """... and the level at which it takes over again."""
    least_tick_seconds: float = 0.05
    """Minimum time between two rounds that advance resolved timestamps. The time is ten times the length of
    the last round if that is more."""
    most_tick_seconds: float = 25.0
    """Maximum time from the begin of one round to that of the next."""
    lock_tick_seconds: float = 5.0
    """Interval of the checks for abandoned locks."""
    stale_seconds: float = 20.0
    """Lag above which a region has its locks resolved, if its resolved ts didn't advance in
    `least_stall_count` messages."""
    least_stall_count: int = 10
    locks_age_seconds: float = 10.0
    """Minimum age of the locks that are resolved."""
    locks_regions: int = 64
    """Maximum number of regions per check."""
    locks_pause_seconds: float = 10.0
    """Minimum pause between two resolutions in the same region."""
    silent_seconds: float = 3600.0
    """A stream is reconnected if one of its regions had neither events nor progress for this time."""
    filter_loop: bool = False
    """Have TiKV omit changes written by another TiCDC."""
