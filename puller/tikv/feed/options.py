"""The event feed's numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """Defaults are TiCDC's where it has the same (its puller document)."""

    region_scan_limit: int = 40
    """Regions of one store whose incremental scan may be under way at once."""
    region_batch: int = 20
    """Regions asked of PD at once when a span is divided."""
    region_retry_seconds: float = 60.0
    """How long PD is asked for a whole cover of a span before the feed gives up."""
    mailbox: int = 128
    """Messages that a region worker, one of its handles or a SpanPuller may be behind."""
    handles: int = 8
    """Actors that share the regions of a store while its region worker is far behind."""
    high_water: float = 0.7
    """From this part of its mailbox on a region worker shares its work ..."""
    low_water: float = 0.2
    """... and down to this part."""
    least_tick_seconds: float = 0.05
    """Between two rounds in which resolved timestamps are passed on; ten times as long as the last one took,
    if that is more ..."""
    most_tick_seconds: float = 25.0
    """... and never more than this, from the begin of one to that of the next."""
    lock_tick_seconds: float = 5.0
    """How often regions are looked through for locks that were left."""
    stale_seconds: float = 20.0
    """A region this far behind PD's clock, whose resolved ts stood still at `least_penalty` messages, has
    its locks resolved ..."""
    least_penalty: int = 10
    locks_age_seconds: float = 10.0
    """... that are older than this, ..."""
    locks_regions: int = 64
    """... at most of so many regions in one look, ..."""
    locks_pause_seconds: float = 10.0
    """... and of the same region not sooner than after this."""
    silent_seconds: float = 3600.0
    """A stream with a region from which neither events nor progress came for so long is made anew."""
    filter_loop: bool = False
    """Have TiKV leave out what another TiCDC wrote."""
