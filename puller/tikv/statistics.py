"""Counts of a TiKV puller."""

from __future__ import annotations

from msgspec import Struct

from ...events import Ts


class TableStatistics(Struct, frozen=True):
    """One table, or the least or the sum over all of them."""

    regions: int
    """Parts that the table's keys are in, as its regions have told."""
    ingress_commit_ts: Ts
    """Of the change that came last; 0 before the first."""
    egress_commit_ts: Ts
    """Of the change that was sent on last."""
    ingress_resolved_ts: Ts
    """Of the region that was resolved last."""
    egress_resolved_ts: Ts
    """Everything at or below it has been sent on."""
    changes: int
    """Sent on."""
    fallen_back: int
    """Changes dropped because the table's resolved ts had passed them; more than 0 is a bug of somebody."""
    since: float
    """When `egress_resolved_ts` last moved, by the clock's `now()`."""


class TikvStatistics(Struct, frozen=True):
    """A puller at a moment."""

    tables: int
    total: TableStatistics
    """Commit ts are the greatest, resolved ts the least over the tables."""
    slowest_table: int
    """The one with the least resolved ts; 0 without tables."""
    stores: int
    streams: int
    initialising: int
    """Regions whose incremental scan was asked for and isn't over."""
    failures: dict[str, int]
    """Failed regions by reason, since the start."""
    locks_resolved: int
    """Transactions ended for others, counted once a region."""
    stale_events: int
    """Dropped: of a former request, or of a region that isn't asked for."""
