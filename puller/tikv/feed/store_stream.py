"""One gRPC stream to a store, for the regions of all subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import count
from random import Random
from typing import Final, Protocol, TypeVar

import grpc
from grpc import aio

from ....actors import Clock, PooledRef
from ....codec.proto import CHANGE_DATA, cdcpb, kvrpcpb, metapb
from ....errors import Retryable, SourceError
from ...grpc.channel import Channels
from .backlog import Backlog
from .error_table import Reaction, classify_status
from .messages import EventReceived, Forget, Registered, StreamEnded
from .request import Request
from .request_group import RequestGroup

T = TypeVar("T")

CLIENT_VERSION: Final = "8.1.0"
"""Client version sent to TiKV: below 4.0.8 it sends no batched resolved ts, below 5.3.0 it doesn't check the
cluster's id."""

FEATURES: Final = (("features", "stream-multiplexing"),)
"""A region may be requested several times on one stream. A TiKV without this feature (before 7.x) answers
UNIMPLEMENTED, and gets the older form of the call until that stream ends: TiKV may then have been
upgraded."""

MOST_PAUSE_SECONDS: Final = 0.1
"""Maximum pause after a stream broke, so that not all feeds of a store reconnect at once."""

_NO_MULTIPLEXING: Final = Reaction("same_region", "NoMultiplexing")

request_ids: Final = count(1)


class Owner(Protocol):
    """The owner of a stream: a store. Called in the loop's thread."""

    id: int

    @property
    def worker(self) -> PooledRef[Registered | EventReceived | Forget | StreamEnded]: ...

    multiplexing: bool
    channels: Channels
    clock: Clock
    random: Random
    cluster_id: int
    filter_loop: bool

    async def address(self) -> str: ...

    def spawn(self, work: Coroutine[object, None, T], name: str) -> asyncio.Task[T]: ...

    def ended(self, stream: StoreStream) -> None: ...

    def failed(self, request: Request, action: Reaction) -> None: ...


class StoreStream:
    """Sends requests and passes messages unparsed to the store's region worker.

    A request id is shared by many regions, as TiKV sends one resolved ts per request id: the first request
    for a region on this stream has the stream's first id, the second one its second id, and so on. So
    messages for an earlier request of a region are recognised by their smaller id. Without multiplexing the
    store sends one resolved ts for the stream and accepts a region once, and every request has an id of its
    own.
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.multiplexing = owner.multiplexing
        self.groups: dict[int, RequestGroup] = {}
        """By request id, or all under 0. Used by the region worker only."""
        self.live = 0
        """Number of requests on it that have not ended."""
        self.heard_at = owner.clock.now()
        self._ids: list[int] = []
        self._times: dict[int, int] = {}
        """Number of requests on this stream, by region."""
        self._outgoing: asyncio.Queue[Request | cdcpb.ChangeDataRequest] = asyncio.Queue()
        self._in_hand: Request | None = None
        self._exchange: asyncio.Task[Reaction] | None = None
        owner.spawn(self._run(), f"stream to store {owner.id}")

    # --- for its store ---------------------------------------------------------------------------

    def takes(self, region_id: int) -> bool:
        """True if the region may be requested on this stream."""
        return self.multiplexing or region_id not in self._times

    @property
    def abandoned(self) -> int:
        """Number of regions that the store still sends though their requests have ended.

        Only without multiplexing: they stay occupied, as that protocol can't deregister a region.
        """
        return 0 if self.multiplexing else len(self._times) - self.live

    def send(self, request: Request) -> None:
        """Request a region; at most as many are in flight as its store has tokens."""
        request.stream = self
        self.live += 1
        self._times.setdefault(request.id, 0)
        self._outgoing.put_nowait(request)

    def deregister(self, request: Request) -> None:
        """Deregister at the store a request that the region worker has dropped."""
        if not self.multiplexing:
            return  # see `abandoned`
        message = cdcpb.ChangeDataRequest(
            header=self._header(), region_id=request.id, request_id=request.request_id
        )
        message.deregister.SetInParent()
        self._outgoing.put_nowait(message)

    def forgotten(self, region_id: int) -> None:
        """Note that the store has ended the region's request."""
        if not self.multiplexing:
            self._times.pop(region_id, None)

    def reconnect(self) -> None:
        """End the stream and open a new one; all its regions are requested again."""
        if self._exchange is not None:
            self._exchange.cancel()

    # --- its task --------------------------------------------------------------------------------

    async def _run(self) -> None:
        self._exchange = self.owner.spawn(self._talk(), f"exchange with store {self.owner.id}")
        try:
            await asyncio.wait([self._exchange])
        finally:
            self._exchange.cancel()
        cut = self._exchange.cancelled() or self._exchange.exception() is not None
        action = Reaction("same_region", "Reconnect") if cut else self._exchange.result()
        if not cut:  # the store may have been upgraded before the next connection
            self.owner.multiplexing = action is not _NO_MULTIPLEXING
        await asyncio.sleep(self.owner.random.random() * MOST_PAUSE_SECONDS)
        self.owner.ended(self)
        await self.owner.worker.atell(StreamEnded(self, action))
        for request in self._left():
            self.owner.failed(request, action)

    def _left(self) -> list[Request]:
        """Return the requests that were not sent."""
        left = [self._in_hand] if self._in_hand is not None else []
        while not self._outgoing.empty():
            item = self._outgoing.get_nowait()
            if isinstance(item, Request):
                left.append(item)
        return left

    async def _talk(self) -> Reaction:
        """Send and receive until the stream ends; return the reaction to its end."""
        try:
            address = await self.owner.address()
        except Retryable:
            return Reaction("send_failed", "NoAddress")
        method = CHANGE_DATA["EventFeedV2" if self.multiplexing else "EventFeed"]
        metadata = FEATURES if self.multiplexing else ()
        call = self.owner.channels.stream(address, method, raw=True, metadata=metadata)
        sender = self.owner.spawn(self._send(call), f"requests to store {self.owner.id}")
        backlog = Backlog()
        try:
            while isinstance(data := await call.read(), bytes):
                self.heard_at = self.owner.clock.now()
                await backlog.add(len(data))
                await self.owner.worker.atell(EventReceived(self, data, backlog))
        except aio.AioRpcError as error:
            return self._action(error, self.owner.channels.failure(address, method, error))
        finally:
            call.cancel()
            sender.cancel()
            await asyncio.wait([sender])
        return Reaction("send_failed", "EndOfStream")

    def _action(self, error: aio.AioRpcError, failure: Exception) -> Reaction:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED and self.multiplexing:
            return _NO_MULTIPLEXING
        if isinstance(failure, SourceError):
            return Reaction("fatal", error.code().name, error=failure)
        return classify_status(error.code(), error.details() or "")

    async def _send(self, call: aio.StreamStreamCall[cdcpb.ChangeDataRequest, bytes]) -> None:
        try:
            while True:
                item = await self._outgoing.get()
                message = await self._register(item) if isinstance(item, Request) else item
                if message is not None:
                    await call.write(message)
        except (aio.AioRpcError, asyncio.InvalidStateError):
            pass  # the reader gets the error as well

    async def _register(self, request: Request) -> cdcpb.ChangeDataRequest | None:
        """Register a request with the worker before the store can answer it; None if it was stopped."""
        self._in_hand = request
        if request.stopped:
            self._in_hand = None
            return None
        self._number(request)
        await self.owner.worker.atell(Registered(self, request))
        self._in_hand = None
        if request.stopped:
            self.owner.worker.post(Forget(self, request))
            return None
        return self._message(request)

    def _number(self, request: Request) -> None:
        if not self.multiplexing:
            request.request_id = next(request_ids)
            return
        times = self._times[request.id]
        self._times[request.id] = times + 1
        if times == len(self._ids):
            self._ids.append(next(request_ids))
        request.request_id = self._ids[times]

    def _header(self) -> cdcpb.Header:
        return cdcpb.Header(cluster_id=self.owner.cluster_id, ticdc_version=CLIENT_VERSION)

    def _message(self, request: Request) -> cdcpb.ChangeDataRequest:
        """Build a ChangeDataRequest."""
        message = cdcpb.ChangeDataRequest(
            header=self._header(),
            region_id=request.id,
            region_epoch=metapb.RegionEpoch(conf_ver=request.conf_ver, version=request.version),
            request_id=request.request_id,
            checkpoint_ts=request.checkpoint_ts,
            start_key=request.span.start,
            end_key=request.span.end,
            extra_op=kvrpcpb.ExtraOp.ReadOldValue,
            filter_loop=self.owner.filter_loop,
        )
        message.register.SetInParent()
        return message
