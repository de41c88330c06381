"""The client of a TiKV cluster for one feed: the loop's thread, connections, PD, regions and reads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager
from random import Random
from typing import TypeVar

from ...actors import Clock, SystemClock
from ...events import Ts
from ..grpc.channel import Channels
from ..grpc.loop import log_error
from ..grpc.transport import SOCKETS, Transport
from .kv.kv import Kv
from .kv.region_cache import RegionCache
from .options import TikvOptions
from .pd.pd import PdClient
from .pd.safe_point import SafePoint

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

    def __init__(
        self,
        options: TikvOptions,
        clock: Clock,
        random: Random,
        on_error: Callable[[BaseException], None] = log_error,
        transport: Transport = SOCKETS,
    ) -> None:
        """`on_error` is called in the loop's thread with an error that ended a task nobody waits for."""
        self.options = options
        self.clock = clock
        self.random = random
        self.loop = transport.loop(on_error)
        self._transport = transport
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

    def run(self, work: Coroutine[object, None, T], timeout_seconds: float | None = None) -> T:
        """Run a coroutine in the loop's thread and return its result."""
        return self.loop.run(work, timeout_seconds)

    def begin(self, work: Coroutine[object, None, T]) -> Future[T]:
        """Start a coroutine in the loop's thread; return its result to come."""
        return self.loop.begin(work)

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
        self.channels = Channels(options, clock, self._transport)
        self._opened.push_async_callback(self.channels.close)
        self.pd = PdClient(options, self.channels, clock, random)
        self._opened.push_async_callback(self.pd.close)
        self.cache = RegionCache(self.pd, clock, random, retry_seconds=options.region_retry_seconds)
        self.kv = Kv(options, self.pd, self.cache, self.channels, clock, random)
        await self.pd.connect()

    async def _close(self) -> None:
        await self._opened.aclose()


@contextmanager
def connected(options: TikvOptions) -> Iterator[TikvClient]:
    """Connect to the cluster. Raises Retryable and Fatal."""
    client = TikvClient(options, SystemClock(), Random())
    client.start()
    try:
        yield client
    finally:
        client.stop()


@contextmanager
def held(client: TikvClient, name: str, ts: Ts) -> Iterator[None]:
    """Keep the versions at `ts` readable, until `gc_ttl_seconds` after the end, for the feed `name`.

    Raises SourceError if they were already collected, or at the end if they may have been meanwhile.
    """
    safe_point = SafePoint(client.options, client.pd, client.clock, f"tidemill-{name}", lambda: ts)
    client.run(safe_point.start(ts))
    holding = client.begin(safe_point.run())
    yield
    if holding.done():
        holding.result()
