"""Division of spans into the regions that hold them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Final

from ....actors import Clock
from ....errors import Retryable
from ..kv.region_cache import RegionCache
from ..span import Span, intersect
from ..topology import RegionInfo
from .request import Subscription

PAUSE_SECONDS: Final = 0.5
"""Pause before PD is asked again after it gave no answer."""

AT_ONCE: Final = 32
"""Maximum number of spans divided concurrently: PD answers them one after the other anyway."""


class Divider:
    """Asks PD for the regions of spans and calls `found` for each, with its part of the subscription's span.

    To be used in the loop's thread only. Tasks live only while there are spans to divide.
    """

    def __init__(
        self,
        cache: RegionCache,
        clock: Clock,
        batch: int,
        retry_seconds: float,
        on_range: Callable[[Subscription, RegionInfo, Span], Coroutine[object, None, None]],
        spawn: Callable[[Coroutine[object, None, object], str], asyncio.Task[object]],
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._batch = batch
        self._retry_seconds = retry_seconds
        self._on_range = on_range
        self._spawn = spawn
        self._waiting: deque[tuple[Subscription, Span]] = deque()
        self._running = 0

    def __len__(self) -> int:
        """Number of spans that wait or are being divided."""
        return len(self._waiting) + self._running

    def add(self, subscription: Subscription, span: Span) -> None:
        self._waiting.append((subscription, span))
        if self._running < AT_ONCE:
            self._running += 1
            self._spawn(self._work(), "divide")

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._divide(*self._waiting.popleft())
        finally:
            self._running -= 1

    async def _divide(self, subscription: Subscription, span: Span) -> None:
        """Divide a span. Raises Retryable if PD's regions don't cover the span without gaps for
        `retry_seconds`."""
        while not subscription.stopped and span.start < span.end:
            regions = await self._load(span)
            for region in regions:
                part = intersect(subscription.span, Span(region.start, region.end))
                if part is not None and not subscription.stopped:
                    await self._on_range(subscription, region, part)
            span = Span(regions[-1].end, span.end)

    async def _load(self, span: Span) -> list[RegionInfo]:
        began = self._clock.now()
        while True:
            try:
                return await self._cache.load(span, self._batch)
            except Retryable:
                if self._clock.now() - began >= self._retry_seconds:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)
