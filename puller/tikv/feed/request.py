"""Requests for a region's changes, and the subscription that they are part of."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from ....actors import PooledRef
from ....events import Ts
from ..region import RegionState
from ..span import Span
from ..topology import RegionInfo
from .range_lock import RangeLock

if TYPE_CHECKING:
    from ..match.matcher import Matcher
    from .span_puller import Pulled
    from .store_stream import StoreStream

subscription_ids: Final = count(1)


class Subscription:
    """A span whose changes go to one SpanPuller. For the loop's thread only, except `ref` and `id`."""

    __slots__ = ("id", "lock", "ref", "since", "span", "start_ts", "stopped")

    def __init__(self, span: Span, checkpoint_ts: Ts, ref: PooledRef[Pulled], since: float) -> None:
        self.id = next(subscription_ids)
        self.span = span
        self.start_ts = checkpoint_ts
        self.ref = ref
        self.lock: RangeLock[Request] = RangeLock(span, checkpoint_ts)
        self.since = since
        self.stopped = False

    @property
    def requests(self) -> list[Request]:
        """Requests that hold a part of the lock. Other threads may read a copy."""
        return self.lock.held


class Request(RegionState):
    """One region of one subscription, from its lock to its unlock.

    The loop's thread owns it until it is registered with its store's region worker, which owns it until it
    reports it as broken or lost. `token`, `stream` and `stopped` always belong to the loop's thread.
    """

    __slots__ = ("heard_at", "matcher", "stall_count", "stream", "subscription", "token")

    def __init__(self, subscription: Subscription, region: RegionInfo, span: Span, now: float) -> None:
        super().__init__(
            region.id,
            span,
            region.conf_ver,
            region.version,
            subscription.start_ts,
            table=subscription.id,
            since=now,
        )
        self.whole = span.start == region.start and span.end == region.end
        self.subscription = subscription
        self.stream: StoreStream | None = None
        self.token = False
        """True if it holds one of its store's tokens."""
        self.matcher: Matcher | None = None
        """The matcher; None while there is nothing to match."""
        self.stall_count = 0
        """Resolved-ts messages received since it last advanced."""
        self.heard_at = now
        """Time of the last message for it, on the clock's `now()`."""
