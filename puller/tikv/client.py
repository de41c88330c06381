"""The client of a TiKV cluster for one feed: the loop's thread, connections, PD, regions and reads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from random import Random
from typing import Any, TypeVar

from ...actors import Clock
from ..grpc.channel import Channels
from ..grpc.loop import LoopThread
from .kv.kv import Kv
from .kv.region_cache import RegionCache
from .options import TikvOptions
from .pd.pd import PdClient

log = logging.getLogger("tidemill.puller")

T = TypeVar("T")

CLOSE_SECONDS = 5.0
"""Timeout for closing the connections."""


class TikvClient:
    """`start`, `run` and `stop` are called from other threads; the attributes are used in the loop's thread
    only."""

    channels: Channels
    pd: PdClient
    cache: RegionCache
    kv: Kv

    def __init__(self, options: TikvOptions, clock: Clock, random: Random) -> None:
        self.options = options
        self.clock = clock
        self.random = random
        self.on_error: Callable[[BaseException], None] | None = None
        """Called in the loop's thread with an error that ended a task nobody waits for."""
        self.loop = LoopThread(on_error=self._failed)
        self._started = False
        self._opened = AsyncExitStack()

    def start(self) -> None:
        """Connect to PD. Raises Retryable and Fatal; after an error nothing is left running."""
        self.loop.start()
        self._started = True
        try:
            self.run(self._open())
        except BaseException:
            self.stop()
            raise

    def run(self, work: Coroutine[Any, Any, T], timeout_seconds: float | None = None) -> T:
        """Run a coroutine in the loop's thread and return its result."""
        return self.loop.run(work, timeout_seconds)

    def stop(self) -> None:
        """End all tasks, connections and the thread. Idempotent."""
        if not self._started:
            return
        self._started = False
        try:
            self.run(self._close(), CLOSE_SECONDS)
        except TimeoutError:
            log.warning("connections to TiKV were not closed in %g s", CLOSE_SECONDS)
        finally:
            self.loop.stop()

    async def _open(self) -> None:
        options, clock, random = self.options, self.clock, self.random
        self.channels = Channels(options, clock)
        self._opened.push_async_callback(self.channels.close)
        self.pd = PdClient(options, self.channels, clock, random)
        self._opened.push_async_callback(self.pd.close)
        self.cache = RegionCache(self.pd, clock, random, retry_seconds=options.region_retry_seconds)
        self.kv = Kv(options, self.pd, self.cache, self.channels, clock, random)
        await self.pd.connect()

    async def _close(self) -> None:
        await self._opened.aclose()

    def _failed(self, error: BaseException) -> None:
        if self.on_error is not None:
            self.on_error(error)
        else:
            log.error("a task of the TiKV client failed", exc_info=error)
