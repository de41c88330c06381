"""Ends transactions whose TiDB server has died: their locks hold back their regions' resolved ts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from ....actors import Clock
from ....codec.proto import kvrpcpb
from ....codec.tidb.key import decode_bytes
from ....errors import Retryable
from ....events import Ts, compose_ts, physical_ms
from ...grpc.loop import sleep
from ..kv.kv import Kv
from ..kv.transactions import PrimaryMismatch
from ..pd.pd import PdClient
from ..span import UPPER_BOUND
from .event_feed import EventFeed
from .options import EventFeedOptions
from .request import Request

log = logging.getLogger("tidemill.puller")

PAGE: Final = 1024
"""Maximum number of locks per request."""
KEPT: Final = 1024
"""Number of regions whose last resolution time is kept; beyond it the oldest are dropped."""
YIELD_REGIONS: Final = 10_000
"""Regions checked before the loop's other tasks get their turn: about 2 ms."""


_PESSIMISTIC: Final = (kvrpcpb.Op.PessimisticLock, kvrpcpb.Op.SharedPessimisticLock)
"""Lock types that don't hold back the resolved ts. One without a primary lock may belong to a living
transaction."""


class HeldLock(Struct, frozen=True):
    """A lock of a living transaction that held back a region at the last check."""

    region_id: int
    key: bytes
    start_ts: Ts
    ttl_ms: int


class LockResolver:
    """Checks the regions periodically (TiCDC puller document). To be used in the loop's thread only."""

    def __init__(
        self, feed: EventFeed, kv: Kv, pd: PdClient, clock: Clock, options: EventFeedOptions
    ) -> None:
        self._feed = feed
        self._kv = kv
        self._pd = pd
        self._clock = clock
        self._options = options
        self._last: dict[int, float] = {}
        self.held: dict[int, HeldLock] = {}
        """The oldest lock per region that could not be resolved."""
        self.next_look = 0.0
        """Time of the next check, on the clock's `now()`."""
        self.resolved = 0
        """Number of transactions ended, counted once per region."""

    async def run(self) -> None:
        seconds = self._options.lock_tick_seconds
        while True:
            self.next_look = self._clock.now() + seconds
            await sleep(self._clock, seconds)
            try:
                await self.look()
            except Retryable as error:
                log.warning("abandoned locks can't be checked: %s", error)

    async def look(self) -> None:
        """Resolve old locks in regions that don't advance. Raises Retryable if PD doesn't answer."""
        now = physical_ms(await self._pd.tso())
        stale = await self._stale(now)
        max_ts = compose_ts(now - round(self._options.locks_age_seconds * 1000))
        for request in stale[: self._options.locks_regions]:
            self._last[request.id] = self._clock.now()
            try:
                await self._resolve(request, max_ts)
            except Retryable as error:
                log.warning("locks of region %d are not resolved: %s", request.id, error)
            request.stall_count = 0
        self._forget()

    async def _stale(self, now_ms: int) -> list[Request]:
        """Return the regions that don't advance and whose pause is over. Ends streams that are silent."""
        options, now = self._options, self._clock.now()
        below = compose_ts(now_ms - round(options.stale_seconds * 1000))
        silent = compose_ts(now_ms - round(options.silent_seconds * 1000))
        requests: dict[int, Request] = {}
        behind = set()
        for count, request in enumerate(self._requests()):
            if count % YIELD_REGIONS == YIELD_REGIONS - 1:
                await asyncio.sleep(0)
            if request.resolved_ts >= below:
                continue
            behind.add(request.id)
            if request.resolved_ts < silent and now - request.heard_at > options.silent_seconds:
                self._reconnect(request)
            elif self._is_due(request, now):
                requests.setdefault(request.id, request)
        self.held = {region: held for region, held in self.held.items() if region in behind}
        return list(requests.values())

    def _is_due(self, request: Request, now: float) -> bool:
        if not request.initialised or request.stall_count < self._options.least_stall_count:
            return False
        last = self._last.get(request.id)
        return last is None or now - last >= self._options.locks_pause_seconds

    def _requests(self) -> Iterator[Request]:
        for subscription in list(self._feed.subscriptions.values()):
            yield from subscription.requests.copy()

    def _reconnect(self, request: Request) -> None:
        stream = request.stream
        if stream is not None and request.request_id:
            log.warning("no message for %s for too long: reconnecting its stream", request)
            request.heard_at = self._clock.now()
            stream.reconnect()

    async def _resolve(self, request: Request, max_ts: Ts) -> None:
        """Resolve the locks of the whole region: any of them holds back its resolved ts."""
        at, end = self._bounds(request)
        self.held.pop(request.id, None)
        alive: set[Ts] = set()
        limit = PAGE
        while True:
            locks = await self._kv.scan_locks(at, end, max_ts, limit)
            ends = await self._ends(request, locks, alive)
            if ends and locks:
                await self._kv.resolve_locks(locks[0].key, ends)
                self.resolved += len(ends)
            if len(locks) < limit:
                return
            # The last key may have more shared locks than the page holds, so the next page begins with it
            # again.
            at = locks[-1].key
            limit = 2 * limit if locks[0].key == at else PAGE

    async def _ends(self, request: Request, locks: list[kvrpcpb.LockInfo], alive: set[Ts]) -> dict[Ts, Ts]:
        """Return start ts and commit ts (0 if rolled back) of the locks' transactions that have ended.

        `alive` contains the transactions known to be alive; this method adds to it.
        """
        ends: dict[Ts, Ts] = {}
        for lock in locks:
            start_ts = lock.lock_version
            if start_ts in ends or start_ts in alive or lock.lock_type in _PESSIMISTIC:
                continue
            try:
                status = await self._kv.transaction_status(lock)
            except PrimaryMismatch as error:
                log.warning("a lock on %s is not resolved: %s", lock.key.hex(), error)
                alive.add(start_ts)
                continue
            if status.lock is None:
                ends[start_ts] = status.commit_ts
                continue
            alive.add(start_ts)
            held = self.held.get(request.id)
            if held is None or start_ts < held.start_ts:
                self.held[request.id] = HeldLock(request.id, lock.key, start_ts, status.lock.lock_ttl)
        return ends

    def _bounds(self, request: Request) -> tuple[bytes, bytes]:
        """Return the raw bounds of the region; an empty end is +inf."""
        region = self._feed.cache.cached(request.id)
        start, end = (request.span.start, request.span.end) if region is None else (region.start, region.end)
        return _raw(start), _raw(end)

    def _forget(self) -> None:
        if len(self._last) > KEPT:
            horizon = self._clock.now() - self._options.locks_pause_seconds
            self._last = {region: at for region, at in self._last.items() if at > horizon}


def _raw(key: bytes) -> bytes:
    return b"" if key in (b"", UPPER_BOUND) else decode_bytes(key)[0]
