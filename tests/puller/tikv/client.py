"""A TiKV client on a loop thread of its own."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from tidemill.actors import SystemClock
from tidemill.puller.grpc.channel import Channels
from tidemill.puller.grpc.loop import LoopThread
from tidemill.puller.tikv.kv.kv import Kv
from tidemill.puller.tikv.kv.region_cache import RegionCache
from tidemill.puller.tikv.options import TikvOptions, endpoints
from tidemill.puller.tikv.pd.pd import PdClient
from tidemill.testing.progress import STALL_SECONDS


class Client:
    """Everything of the client that one feed has, and `run` to use it from the test's thread."""

    def __init__(self, loop: LoopThread, options: TikvOptions, clock: Any) -> None:
        self.loop = loop
        self.options = options
        self.clock = clock
        self.random = Random(7)
        self.channels = Channels(options, clock)
        self.pd = PdClient(options, self.channels, clock, self.random)
        self.cache = RegionCache(self.pd, clock, self.random, retry_seconds=options.region_retry_seconds)
        self.kv = Kv(options, self.pd, self.cache, self.channels, clock, self.random)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run(work, STALL_SECONDS)

    async def close(self) -> None:
        await self.pd.close()
        await self.channels.close()


@contextmanager
def client(pd: str, *, connected: bool = True, clock: Any = None, **options: Any) -> Iterator[Client]:
    """Leaves no thread and no connection; an error of a task that nobody waits for fails the test."""
    errors: list[BaseException] = []
    loop = LoopThread(on_error=errors.append)
    loop.start()
    try:
        made = loop.run(_made(loop, TikvOptions(pd=endpoints(pd), **options), clock or SystemClock()))
        try:
            if connected:
                made.run(made.pd.connect())
            yield made
        finally:
            loop.run(made.close(), STALL_SECONDS)
    finally:
        loop.stop()
    assert errors == []


async def _made(loop: LoopThread, options: TikvOptions, clock: Any) -> Client:
    return Client(loop, options, clock)
