"""A store of the event feed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Protocol, TypeVar

from ....actors import Clock, PooledRef
from ....errors import Retryable, SourceError
from ...grpc.channel import Channels
from ..kv.region_cache import RegionCache
from ..pd.version import check
from .error_table import Reaction
from .messages import Forget
from .region_worker import WorkerCounts, WorkerMessage
from .request import Request
from .store_stream import StoreStream

T = TypeVar("T")

INCOMPATIBLE_SECONDS = 20.0
"""Pause before a store of an incompatible version is tried again: it may be in the middle of an upgrade."""


class StoreFeed(Protocol):
    """The part of the event feed that its stores use."""

    channels: Channels
    cache: RegionCache
    clock: Clock
    random: Random
    cluster_id: int
    filter_loop: bool

    def spawn(self, work: Coroutine[object, None, T], name: str) -> asyncio.Task[T]: ...

    def failed(self, request: Request, action: Reaction) -> None: ...


class StoreStreams:
    """A store's region worker and the streams to it: one, or several if the store accepts a region only once
    per stream.

    To be used in the loop's thread only.
    """

    def __init__(
        self, store_id: int, feed: StoreFeed, worker: PooledRef[WorkerMessage], counts: WorkerCounts
    ) -> None:
        self.id = store_id
        self.worker = worker
        self.counts = counts
        self.multiplexing = True
        self.streams: list[StoreStream] = []
        self.channels = feed.channels
        self.clock = feed.clock
        self.random = feed.random
        self.cluster_id = feed.cluster_id
        self.filter_loop = feed.filter_loop
        self.spawn = feed.spawn
        self.failed = feed.failed
        self.last_address = ""
        self._cache = feed.cache

    def send(self, request: Request) -> None:
        for stream in self.streams:
            if stream.takes(request.id):
                break
        else:
            stream = StoreStream(self)
            self.streams.append(stream)
        stream.send(request)

    def forget(self, request: Request) -> None:
        """Stop a request, and notify its stream and worker."""
        stream = request.stream
        if stream is None or not request.request_id:
            return
        self.worker.post(Forget(stream, request))
        stream.deregister(request)

    def done(self, request: Request, by_store: bool) -> None:
        """End a request; reconnect a stream with too many abandoned regions.

        So less than half of a stream's regions are sent in vain and stay occupied, and a reconnection
        requests at most as many regions again as have left.
        """
        stream = request.stream
        if stream is None:
            return
        stream.live -= 1
        if by_store:
            stream.forgotten(request.id)
        if not stream.multiplexing and stream.live <= stream.abandoned:
            stream.reconnect()

    def ended(self, stream: StoreStream) -> None:
        if stream in self.streams:
            self.streams.remove(stream)

    async def address(self) -> str:
        """Return the store's address. Raises Retryable if PD doesn't know the store or its version isn't
        supported."""
        info = await self._cache.store(self.id)
        if info is None or info.tombstone:
            raise Retryable(f"PD knows no store {self.id}")
        try:
            check([info])
        except SourceError as error:
            self._cache.forget_store(self.id)
            await asyncio.sleep(INCOMPATIBLE_SECONDS)
            raise Retryable(str(error)) from error
        self.last_address = info.address
        return info.address
