"""The changes of any number of spans, from all stores."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Final, TypeVar

from ....actors import ActorSystem, Clock, Failed, PooledRef
from ....codec.blocks import NOTHING
from ....errors import Retryable
from ....events import Ts
from ...grpc.channel import Channels
from ...grpc.loop import LoopThread
from ..kv.region_cache import RegionCache
from ..match.spill import PrewriteMemory as Spill
from ..span import Span
from ..topology import RegionInfo
from .advance import Advance, Advancer, DirtySet
from .divide import Divider
from .error_table import Reaction, unavailable
from .failures import Failure, Failures
from .options import EventFeedOptions
from .range_lock import Cancelled, Locked, RangeWaits, Stale
from .region_worker import RegionWorker, WorkerCounts
from .reports import FatalReport, Initialised, Lost, RegionBroken, RegionReports, Report
from .request import Request, Subscription
from .span_puller import Pulled
from .store import StoreStreams
from .token_limiter import TokenLimiter

T = TypeVar("T")

log = logging.getLogger("tidemill.puller")

_STALE: Final = Reaction("redivide", "RangeLockStale")


class EventFeed:
    """Pulls spans (TiCDC puller document): each is divided into regions; each region is locked and requested
    from its leader's store, and requested again when it moves.

    To be used in the loop's thread only, except the region workers, which run in `system` and report here.
    """

    def __init__(
        self,
        loop: LoopThread,
        system: ActorSystem,
        cache: RegionCache,
        channels: Channels,
        spill: Spill,
        options: EventFeedOptions,
        *,
        cluster_id: int,
        random: Random,
        on_error: Callable[[BaseException], None],
        supervisor: PooledRef[Failed] | None = None,
        advance: Advance | None = None,
        name: str = "feed",
    ) -> None:
        """`on_error` is called in the loop's thread with an error that stops the feed; for `advance` see
        Advancer."""
        self.cache = cache
        self.channels = channels
        self.clock: Clock = system.clock
        self.random = random
        self.cluster_id = cluster_id
        self.filter_loop = options.filter_loop
        self.options = options
        self.name = name
        self.subscriptions: dict[int, Subscription] = {}
        self.stores: dict[int, StoreStreams] = {}
        self.limiter: TokenLimiter[Request] = TokenLimiter(options.region_scan_limit)
        self.divider = Divider(
            cache, self.clock, options.region_batch, options.region_retry_seconds, self._found, self.spawn
        )
        self.failures = Failures(cache, self.clock, self._found, self.divider.add, self.spawn)
        self._loop = loop
        self._tasks: set[asyncio.Task[object]] = set()
        self._system = system
        self._spill = spill
        self._supervisor = supervisor
        self._on_error = on_error
        self._reports = RegionReports(loop.call, self._receive)
        self.dirty = DirtySet()
        self.dirty.reader = self._advancer = system.spawn(
            Advancer,
            self.dirty,
            options,
            advance,
            lambda: system.sharing,
            capacity=1024,
            name=f"{name}: advancer",
            supervisor=supervisor,
        )

    def subscribe(self, span: Span, checkpoint_ts: Ts, ref: PooledRef[Pulled]) -> int:
        """Send the changes of `span` above `checkpoint_ts` to a SpanPuller; return the subscription's id."""
        subscription = Subscription(span, checkpoint_ts, ref, self.clock.now())
        self.subscriptions[subscription.id] = subscription
        self.divider.add(subscription, span)
        return subscription.id

    def unsubscribe(self, subscription_id: int) -> None:
        """Stop a subscription and drop what is in flight for it. Does nothing if there is no such
        subscription."""
        subscription = self.subscriptions.pop(subscription_id, None)
        if subscription is None:
            return
        subscription.stopped = True
        for request in subscription.lock.cancel():
            request.stopped = True
            self._leave(request, by_store=False)
            if request.store_id in self.stores:
                self.stores[request.store_id].forget(request)
        self._pump()

    def failed(self, request: Request, action: Reaction, *, by_store: bool = False) -> None:
        """Handle the failure of a request: free its keys and request them again."""
        subscription = request.subscription
        if not subscription.lock.holds(request):
            return
        self._leave(request, by_store=by_store)
        subscription.lock.unlock(request, request.resolved_ts)
        if action.kind == "fatal" and action.error is not None:
            self._on_error(action.error)
            return
        store = self.stores.get(request.store_id)
        address = "" if store is None else store.last_address
        self.failures.add(
            Failure(
                subscription, request.id, request.version, request.span, action, request.store_id, address
            )
        )

    # --- from a region to its request ------------------------------------------------------------

    async def _found(self, subscription: Subscription, region: RegionInfo, span: Span) -> None:
        """Lock the region's part of the subscription, and request it."""
        request = Request(subscription, region, span, self.clock.now())
        match subscription.lock.lock(request):
            case Locked(checkpoint_ts):
                request.begin_at(checkpoint_ts)
                await self._dispatch(request, region)
            case RangeWaits(wait):
                wait.when_free(partial(self._again, subscription, region, span))
            case Stale(ranges):
                for part in ranges:
                    self.failures.add(Failure(subscription, region.id, region.version, part, _STALE))
            case Cancelled():
                pass

    def _again(self, subscription: Subscription, region: RegionInfo, span: Span) -> None:
        """Request a region again; called while another region unlocks."""
        if not subscription.stopped:
            self.spawn(self._found(subscription, region, span), "a region that waited")

    async def _dispatch(self, request: Request, region: RegionInfo) -> None:
        # The frontier is told of the region first. Sent beyond the mailbox's bound, but it is one message per
        # region.
        layout = Pulled(NOTHING, [(request.id, request.span, request.checkpoint_ts)])
        request.subscription.ref.post(layout)
        try:
            context = await self.cache.rpc_context(region)
        except Retryable:
            self.failed(request, Reaction("redivide", "StoreUnavailable"))
            return
        if request.stopped:
            return
        if context is None:
            self.failed(request, unavailable())
            return
        request.store_id = context.store_id
        self._store(context.store_id)
        self.limiter.add(context.store_id, request)
        self._pump()

    def _pump(self) -> None:
        """Send the requests that have tokens."""
        while requests := self.limiter.take():
            for request in requests:
                request.token = True
                if request.stopped:
                    self._give_back(request)
                else:
                    self.stores[request.store_id].send(request)

    def _store(self, store_id: int) -> StoreStreams:
        store = self.stores.get(store_id)
        if store is None:
            counts = WorkerCounts()
            worker = self._system.spawn(
                RegionWorker,
                store_id,
                self._reports,
                self.dirty,
                self._spill,
                self.options,
                counts,
                capacity=self.options.mailbox,
                name=f"{self.name}: region worker of store {store_id}",
                supervisor=self._supervisor,
            )
            store = self.stores[store_id] = StoreStreams(store_id, self, worker, counts)
        return store

    def _leave(self, request: Request, *, by_store: bool) -> None:
        """End a request: release its token and its place on the stream."""
        self._give_back(request)
        store = self.stores.get(request.store_id)
        if store is not None:
            store.done(request, by_store)

    def _give_back(self, request: Request) -> None:
        if request.token:
            request.token = False
            self.limiter.release(request.store_id)

    # --- from the region workers -----------------------------------------------------------------

    def _receive(self, reports: list[Report]) -> None:
        for report in reports:
            match report:
                case Initialised(request):
                    self._give_back(request)
                case RegionBroken(request, action, by_store):
                    if not by_store:
                        self.stores[request.store_id].forget(request)
                    self.failed(request, action, by_store=by_store)
                case Lost(_, requests, action):
                    for request in requests:
                        self.failed(request, action, by_store=True)
                case FatalReport(error):
                    self._on_error(error)
        self._pump()

    def spawn(self, work: Coroutine[object, None, T], name: str) -> asyncio.Task[T]:
        """Start a task that ends with the feed."""
        task = self._loop.spawn(work, name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """End the streams and all tasks, and stop the region workers."""
        for subscription in self.subscriptions.values():
            subscription.stopped = True
        self.subscriptions = {}
        for store in self.stores.values():
            store.worker.stop(block=False)
        self._advancer.stop(block=False)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
