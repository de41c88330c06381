"""The state of a region that the puller has requested or is about to request."""

from __future__ import annotations

from ...events import Ts
from .span import Span


class RegionState:
    """One subscription's part of one region, from its lock to its unlock.

    Changed only by its present owner: the loop's thread until its request is sent, its store's region worker
    afterwards. A new request for the same keys is a new RegionState.
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
        """The requested keys: the region's within the subscription's, never more."""
        self.conf_ver = conf_ver
        self.version = version
        """Both numbers of the region's epoch at the time of the request."""
        self.whole = False
        """True if the span is the whole region: then all its keys are wanted."""
        self.checkpoint_ts = checkpoint_ts
        """Start of its incremental scan, as the range lock gave it."""
        self.start_ts = checkpoint_ts if start_ts is None else start_ts
        """Start of its subscription: changes committed at or below it aren't wanted."""
        self.table = table
        """Id of its subscription."""
        self.since = since
        """Time of its last progress on the clock's `now()`: locked, initialised or resolved."""
        self.store_id = 0
        """Id of its leader's store; 0 while unknown."""
        self.request_id = 0
        """Id of its request; 0 until it is sent."""
        self.initialised = False
        """True if its incremental scan is complete."""
        self.resolved_ts = checkpoint_ts
        """Everything of it at or below this ts was received."""
        self.stopped = False
        """True if it was stopped: further messages for it are dropped."""

    def begin_at(self, ts: Ts) -> None:
        """Note, before it is requested, that everything of it at or below `ts` was received."""
        self.checkpoint_ts = self.resolved_ts = ts

    def __str__(self) -> str:
        return f"region {self.id} (request {self.request_id}, store {self.store_id}) {self.span}"
