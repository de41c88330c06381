"""One open change feed stream: its queue and its subscriptions.

The queue has a quota in bytes. Live changes are queued immediately, and a region whose change doesn't fit is
ended as congested, as by TiKV; a scan waits for room.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import grpc
from grpc import aio

from ..codec.proto import cdcpb
from .event_bytes import framed, resolved_message
from .subscription import Subscription

if TYPE_CHECKING:
    from ..events import Ts

MAX_MESSAGE_BYTES = 6 << 20
"""TiKV begins a new message beyond this size."""
MAX_MESSAGE_EVENTS = 128
PAUSE_SECONDS = 0.001
"""Pause between two messages while little waits: a message costs as much as about 20 events."""

BATCH_RESOLVED = (4, 0, 8)
"""First client version that understands one resolved ts for many regions."""


class Connection:
    """One change feed stream. To be used in the loop's thread only."""

    def __init__(self, store_id: int, *, quota_bytes: int, multiplexing: bool) -> None:
        self.store_id = store_id
        self.multiplexing = multiplexing
        self.version: tuple[int, int, int] | None = None
        """The client's version, from its first request."""
        self.subscriptions: dict[tuple[int, int], Subscription] = {}
        """By (request id, region id); without multiplexing each region once, under request id 0."""
        self.ready: dict[int, dict[int, Subscription]] = {}
        """Subscriptions that may get a resolved ts: by request id (0 without multiplexing), then region
        id."""
        self.queued_bytes = 0
        self.paused = False
        self.cut: str | None = None
        """How the stream is to end: "drop" now, "half" in the middle of the next batch of events."""
        self._quota_bytes = quota_bytes
        self._queue: deque[tuple[bool, bytes]] = deque()
        self._wake = asyncio.Event()
        self._room = asyncio.Event()

    # --- in

    @property
    def full(self) -> bool:
        return self.queued_bytes >= self._quota_bytes

    def put(self, event: bytes, request_id: int) -> None:
        """Queue a serialized Event."""
        self._put(True, framed(event, request_id))

    def put_message(self, message: bytes) -> None:
        """Queue a serialized ChangeDataEvent."""
        self._put(False, message)

    def _put(self, event: bool, data: bytes) -> None:
        self._queue.append((event, data))
        self.queued_bytes += len(data)
        self._wake.set()

    async def room(self) -> None:
        """Wait until the queue is half empty or the stream has ended."""
        while self.full and self.cut != "gone":
            self._room.clear()
            await self._room.wait()

    # --- out

    def end(self, how: str) -> None:
        """End the stream: "drop" immediately, "half" in the middle of the next batch of events."""
        self.cut = how
        self._wake.set()

    def pause(self, paused: bool) -> None:
        self.paused = paused
        self._wake.set()

    async def send(
        self,
        context: aio.ServicerContext[cdcpb.ChangeDataRequest, bytes],
        delay: Callable[[], Awaitable[None]],
    ) -> None:
        """Write the queue until the stream ends; `await delay()` before each message."""
        while True:
            while (not self._queue or self.paused) and self.cut != "drop":
                self._wake.clear()
                await self._wake.wait()
            if self.cut == "drop":
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the stream was dropped")
            half = self.cut == "half" and self._queue[0][0]
            message = self._half() if half else self._next()
            await delay()
            if message:
                await context.write(message)
            if half:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the stream was cut")
            if len(self._queue) < MAX_MESSAGE_EVENTS:
                await asyncio.sleep(PAUSE_SECONDS)

    def _next(self) -> bytes:
        """Return the next message: a batch of events, or one resolved ts."""
        queue = self._queue
        parts: list[bytes] = []
        size = 0
        while queue and len(parts) < MAX_MESSAGE_EVENTS:
            event, data = queue[0]
            if parts and (not event or size + len(data) > MAX_MESSAGE_BYTES):
                break
            queue.popleft()
            parts.append(data)
            size += len(data)
            if not event:
                break
        self._sent(size)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _half(self) -> bytes:
        """Return the first half of the queued events, less than all of them."""
        events = 0
        while events < len(self._queue) and self._queue[events][0]:
            events += 1
        return b"".join(self._queue.popleft()[1] for _ in range(events // 2))

    def _sent(self, size: int) -> None:
        self.queued_bytes -= size
        if self.queued_bytes * 2 <= self._quota_bytes:
            self._room.set()

    def gone(self) -> None:
        """Note that the stream has ended, and wake those that wait for room."""
        self.cut = "gone"
        self._queue.clear()
        self.queued_bytes = 0
        self._room.set()

    # --- subscriptions

    def request(self, request_id: int) -> int:
        """Return the request id that distinguishes subscriptions of one region; 0 without multiplexing."""
        return request_id if self.multiplexing else 0

    def find(self, request_id: int, region_id: int) -> Subscription | None:
        return self.subscriptions.get((self.request(request_id), region_id))

    def add(self, subscription: Subscription) -> None:
        self.subscriptions[self.request(subscription.request_id), subscription.region.id] = subscription

    def enter(self, subscription: Subscription) -> None:
        """Add a subscription to those that get resolved ts."""
        self.ready.setdefault(self.request(subscription.request_id), {})[subscription.region.id] = (
            subscription
        )

    def leave(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        request, region_id = self.request(subscription.request_id), subscription.region.id
        self.subscriptions.pop((request, region_id), None)
        ready = self.ready.get(request, {})
        if ready.pop(region_id, None) is not None and not ready:
            del self.ready[request]

    # --- resolved ts

    def resolve(self, now: Ts, held: dict[int, Ts], *, coarse: bool = False) -> None:
        """Queue a resolved ts for all ready subscriptions; `held` contains the regions below `now`."""
        if self.full:
            return  # it will be sent again
        for request, ready in self.ready.items():
            mine = sorted((ts, region) for region, ts in held.items() if region in ready)
            free = [region for region in ready if region not in held]
            if coarse:
                self._resolve_coarsely(request, mine + [(now, region) for region in free])
                continue
            self._resolve(request, now, free)
            for ts, region in mine:
                self._resolve(request, ts, [region])

    def _resolve_coarsely(self, request: int, ascending: list[tuple[Ts, int]]) -> None:
        at, size = 0, 8
        while at < len(ascending):
            group = ascending[at : at + size]
            self._resolve(request, group[0][0], [region for _, region in group])
            at, size = at + size, size * 4

    def _resolve(self, request: int, ts: Ts, regions: list[int]) -> None:
        if not regions:
            return
        if self.version is not None and self.version >= BATCH_RESOLVED:
            self.put_message(resolved_message(regions, ts, request))
            return
        for region in regions:
            event = cdcpb.Event(region_id=region, resolved_ts=ts).SerializeToString()
            self.put(event, self.ready[request][region].request_id)
