"""Why a feed of TiKV is slow or stuck: what waits, on what, since when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from ...actors import ActorStatistics, Waiting
from ...events import Ts, compose_ts, physical_ms
from .event_feed import EventFeed
from .lock_resolver import LockResolver
from .request import Request, Subscription

NAMED: Final = 3
"""Of each kind so many are named, the worst first."""
SLOW_SECONDS: Final = 20.0
"""An initialised region further behind than this is slow (TiCDC's number)."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Something that waits, on what, and since when by the clock's `now()`."""

    what: str
    on: str
    since: float


def explain(feed: EventFeed, resolver: LockResolver, now_ts: Ts) -> list[Wait]:
    """In the loop's thread; empty if nothing waits."""
    requests = [r for s in feed.subscriptions.values() for r in s.requests]
    return [
        *_slow(feed, [r for r in requests if r.initialised], now_ts),
        *_uninitialised(feed, [r for r in requests if not r.initialised]),
        *_holes(feed.subscriptions.values()),
        *_locks(feed, resolver),
        *_limits(feed),
        *_mailboxes(feed),
    ]


def slow_regions(feed: EventFeed, now_ts: Ts, uninitialised_seconds: float) -> list[Wait]:
    """What belongs in the log every few minutes (puller.md: slow-region evidence)."""
    requests = [r for s in feed.subscriptions.values() for r in s.requests]
    horizon = feed.clock.now() - uninitialised_seconds
    late = [r for r in requests if not r.initialised and r.since < horizon]
    return [
        *_slow(feed, [r for r in requests if r.initialised], now_ts),
        *_uninitialised(feed, late),
        *_holes(feed.subscriptions.values()),
    ]


def _slow(feed: EventFeed, requests: Iterable[Request], now_ts: Ts) -> Iterator[Wait]:
    horizon = compose_ts(physical_ms(now_ts) - round(SLOW_SECONDS * 1000))
    slow = (request for request in requests if request.resolved_ts < horizon)
    for request in nsmallest(NAMED, slow, key=lambda request: request.resolved_ts):
        behind = (physical_ms(now_ts) - physical_ms(request.resolved_ts)) / 1000
        on = f"region {request.id} {_at(feed, request)}, {behind:.0f} s behind"
        yield Wait(request.subscription.ref.name, on, request.since)


def _uninitialised(feed: EventFeed, requests: Iterable[Request]) -> Iterator[Wait]:
    for request in nsmallest(NAMED, requests, key=lambda request: request.since):
        doing = "its incremental scan" if request.request_id else "being asked for"
        on = f"region {request.id} {_at(feed, request)}: {doing}"
        yield Wait(request.subscription.ref.name, on, request.since)


def _at(feed: EventFeed, request: Request) -> str:
    store = feed.stores.get(request.store_id)
    if store is None:
        return "without a store"
    return f"at store {store.id} ({store.last_address or 'not connected'})"


def _holes(subscriptions: Iterable[Subscription]) -> Iterator[Wait]:
    found = ((s, hole) for s in subscriptions for hole in s.lock.holes())
    for subscription, hole in nsmallest(NAMED, found, key=lambda pair: pair[0].since):
        yield Wait(subscription.ref.name, f"a region for {hole}: no region holds it", subscription.since)


def _locks(feed: EventFeed, resolver: LockResolver) -> Iterator[Wait]:
    regions = {r.id: r for s in feed.subscriptions.values() for r in s.requests} if resolver.held else {}
    for held in nsmallest(NAMED, resolver.held.values(), key=lambda held: held.start_ts):
        request = regions.get(held.region_id)
        if request is not None:
            on = (
                f"the lock on {held.key.hex()} of the transaction {held.start_ts}, alive for {held.ttl_ms} ms"
            )
            yield Wait(f"region {held.region_id}", on, request.since)


def _limits(feed: EventFeed) -> Iterator[Wait]:
    now = feed.clock.now()
    for store, (used, waiting) in feed.limiter.statistics().items():
        if waiting:
            yield Wait(f"{waiting} regions of store {store}", f"one of {used} incremental scans to end", now)
    if feed.failures.limiter.parked:
        yield Wait(f"{feed.failures.limiter.parked} regions that failed", "their next try", now)
    if len(feed.divider):
        yield Wait(f"{len(feed.divider)} spans", "PD, to be divided into regions", now)


def _mailboxes(feed: EventFeed) -> Iterator[Wait]:
    for store in feed.stores.values():
        process = store.worker.actor_inbox
        found = ActorStatistics.of(process)
        depth = f"{found.name} ({found.depth}/{found.capacity})"
        if found.waiting_on is not None:
            yield Wait(depth, f"room in {found.waiting_on}", found.since or 0.0)
        waiting: list[Waiting] = process.waiting()
        for each in waiting[:NAMED]:
            yield Wait(each.name, f"room in {depth}", each.since)
