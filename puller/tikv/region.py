"""What the puller knows of one region that it has asked for, or is about to."""

from __future__ import annotations

from ...events import Ts
from .span import Span


class RegionState:
    """One subscription's part of one region, from its lock to its unlock.

    Changed only by whoever holds it at that moment: the loop's thread until its request is sent, its
    store's region worker afterwards. A new request for the same keys is a new RegionState.
    """

    __slots__ = (
        "checkpoint_ts",
        "conf_ver",
        "id",
        "initialised",
        "request_id",
        "resolved_ts",
        "since",
        "span",
        "start_ts",
        "stopped",
        "store_id",
        "table",
        "version",
        "whole",
    )

    def __init__(
        self,
        region_id: int,
        span: Span,
        conf_ver: int,
        version: int,
        checkpoint_ts: Ts,
        *,
        table: int = 0,
        since: float = 0.0,
        start_ts: Ts | None = None,
    ) -> None:
        self.id = region_id
        self.span = span
        """What was asked for: the region's keys within the subscription's, never more."""
        self.conf_ver = conf_ver
        self.version = version
        """Both as in the region's epoch when it was asked for."""
        self.whole = False
        """Whether the span is all of the region: then no other keys of it can come."""
        self.checkpoint_ts = checkpoint_ts
        """Where its incremental scan starts, as the range lock gave it."""
        self.start_ts = checkpoint_ts if start_ts is None else start_ts
        """Where its subscription began: what was committed up to there is not asked for."""
        self.table = table
        """The subscription that it belongs to."""
        self.since = since
        """When it was last moved on, on the clock's `now()`: locked, initialised or resolved."""
        self.store_id = 0
        """0 until its leader's store is known."""
        self.request_id = 0
        """0 until it was asked for."""
        self.initialised = False
        """Whether its incremental scan is over."""
        self.resolved_ts = checkpoint_ts
        """Everything of it at or below this has come."""
        self.stopped = False
        """What still comes for it is dropped."""

    def begin_at(self, ts: Ts) -> None:
        """Before it is asked for: everything of it at or below `ts` is there."""
        self.checkpoint_ts = self.resolved_ts = ts

    def __str__(self) -> str:
        return f"region {self.id} (request {self.request_id}, store {self.store_id}) {self.span}"
