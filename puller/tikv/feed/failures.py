"""Reactions to failed regions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final

from msgspec import Struct

from ....actors import Clock
from ..kv.region_cache import RegionCache, RpcContext
from ..span import Span
from ..topology import RegionInfo
from .error_table import Reaction
from .request import Subscription
from .retry_limiter import ROUND_SECONDS, RetryLimiter

log = logging.getLogger("tidemill.puller")

RECENT_SECONDS: Final = 2.0
"""Time for which a failure explains why its keys aren't served: also while they are requested again."""
RECENT: Final = 100
"""Maximum number of subscriptions whose last failures are kept."""


class Failure(Struct, frozen=True):
    """A region that failed; its keys are free."""

    subscription: Subscription
    region_id: int
    version: int
    span: Span
    action: Reaction
    store_id: int = 0
    address: str = ""


class Failures:
    """Handles each failure as the error table says, at the pace that the retry limiter allows.

    To be used in the loop's thread only. `found` gets a region to request again, `divide` a span to divide
    again.
    """

    def __init__(
        self,
        cache: RegionCache,
        clock: Clock,
        on_range: Callable[[Subscription, RegionInfo, Span], Coroutine[object, None, None]],
        divide: Callable[[Subscription, Span], None],
        spawn: Callable[[Coroutine[object, None, object], str], asyncio.Task[object]],
    ) -> None:
        self.limiter: RetryLimiter[Failure] = RetryLimiter()
        self.counts: dict[str, int] = {}
        """Number of failures by reason, since the start."""
        self._last: dict[Subscription, tuple[float, Failure]] = {}  # with its time, the oldest first
        self._cache = cache
        self._clock = clock
        self._on_range = on_range
        self._divide = divide
        self._spawn = spawn
        self._rounds: asyncio.Task[object] | None = None

    def add(self, failure: Failure) -> None:
        reason = failure.action.reason
        self.counts[reason] = self.counts.get(reason, 0) + 1
        self._last.pop(failure.subscription, None)
        self._last[failure.subscription] = self._clock.now(), failure
        if len(self._last) > RECENT:
            del self._last[next(iter(self._last))]
        if failure.action.wait:
            asyncio.get_running_loop().call_later(failure.action.wait, self._admit, failure)
        else:
            self._admit(failure)

    def recent(self) -> list[Failure]:
        """Return the last failure of each subscription, if it was within RECENT_SECONDS."""
        horizon = self._clock.now() - RECENT_SECONDS
        return [failure for at, failure in self._last.values() if at > horizon]

    def _admit(self, failure: Failure) -> None:
        now = self._clock.now()
        if self.limiter.admit(failure.region_id, failure, now):
            self._act(failure)
            return
        if self.limiter.hint(failure.region_id, now):
            log.info("region %d fails often: %s", failure.region_id, failure.action.reason)
        if self._rounds is None:
            self._rounds = self._spawn(self._go_round(), "failures that wait")

    async def _go_round(self) -> None:
        try:
            while self.limiter.parked:
                await asyncio.sleep(ROUND_SECONDS)
                for failure in self.limiter.due(self._clock.now()):
                    self._act(failure)
        finally:
            self._rounds = None

    def _act(self, failure: Failure) -> None:
        self._learn(failure)
        subscription = failure.subscription
        if subscription.stopped:
            return
        region = self._cache.cached(failure.region_id)
        if failure.action.kind == "redivide" or region is None or region.version != failure.version:
            self._divide(subscription, failure.span)
        else:
            self._spawn(self._on_range(subscription, region, failure.span), "a region again")

    def _learn(self, failure: Failure) -> None:
        """Update the region cache by the failure."""
        action, region_id = failure.action, failure.region_id
        if action.reason == "NotLeader":
            self._cache.update_leader(region_id, action.leader)
        elif action.reason == "EpochNotMatch":
            self._cache.on_epoch_not_match(region_id, action.current_regions, failure.store_id)
        elif action.kind == "redivide":
            self._cache.invalidate(region_id)
        elif action.kind == "send_failed":
            region = self._cache.cached(region_id)
            if (
                region is not None
                and region.leader is not None
                and region.leader.store_id == failure.store_id
            ):
                self._cache.on_send_fail(RpcContext(region, region.leader, failure.store_id, failure.address))
