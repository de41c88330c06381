"""Explanations of a slow or stuck TiKV feed: what waits, on what, since when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import nsmallest
from itertools import islice
from typing import Final

from ...actors import ActorStatistics, Waiting
from ...codec.tidb.key import decode_record_key
from ...events import Ts, compose_ts, physical_ms
from .feed.event_feed import EventFeed
from .feed.failures import Failure
from .feed.lock_resolver import HeldLock, LockResolver
from .feed.request import Request, Subscription

NAMED: Final = 3
"""Maximum number of items named per kind, the worst first."""
PARKED: Final = 100
"""Maximum number of delayed failures of the retry limiter that are examined."""
SLOW_SECONDS: Final = 20.0
"""Lag above which an initialised region is slow (TiCDC's value): the log names it."""
BEHIND_SECONDS: Final = 5.0
"""Lag above which an explanation names a region: stores resolve about once a second."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait: the part that waits, on what, and since when by the clock's `now()`."""

    what: str
    on: str
    since: float


def explain(feed: EventFeed, resolver: LockResolver, now_ts: Ts) -> list[Wait]:
    """Return the waits of a feed; empty if there are none. Call in the loop's thread."""
    requests = _requests(feed)
    moments = Moments(feed.clock.now(), now_ts)
    uninitialised = [r for r in requests if not r.initialised]
    return [
        *_slow(feed, requests, moments, BEHIND_SECONDS),
        *_uninitialised(feed, uninitialised),
        *_holes(feed, moments),
        *_failed(feed, moments),
        *_locks(resolver.held.values(), moments),
        *_limits(feed, uninitialised),
        *_mailboxes(feed),
    ]


def slow_regions(feed: EventFeed, now_ts: Ts, uninitialised_seconds: float) -> list[Wait]:
    """Return the slow regions, for the log every few minutes (puller.md: slow-region evidence)."""
    requests = _requests(feed)
    moments = Moments(feed.clock.now(), now_ts)
    horizon = moments.now - uninitialised_seconds
    return [
        *_slow(feed, requests, moments, SLOW_SECONDS),
        *_uninitialised(feed, [r for r in requests if not r.initialised and r.since < horizon]),
        *_holes(feed, moments),
    ]


class Moments:
    """PD's time and the clock's `now()` at one moment, to convert a ts to a clock time."""

    def __init__(self, now: float, now_ts: Ts) -> None:
        self.now = now
        self._now_ms = physical_ms(now_ts)

    def seconds_ago(self, ts: Ts) -> float:
        return max(0.0, (self._now_ms - physical_ms(ts)) / 1000)

    def of(self, ts: Ts) -> float:
        return self.now - self.seconds_ago(ts)

    def before(self, seconds: float) -> Ts:
        return compose_ts(max(0, self._now_ms - round(seconds * 1000)))


def _requests(feed: EventFeed) -> list[Request]:
    return [request for subscription in feed.subscriptions.values() for request in subscription.requests]


def _slow(feed: EventFeed, requests: Iterable[Request], moments: Moments, seconds: float) -> Iterator[Wait]:
    horizon = moments.before(seconds)
    slow = [request for request in requests if request.initialised and request.resolved_ts < horizon]
    for request in nsmallest(NAMED, slow, key=lambda request: request.resolved_ts):
        behind = moments.seconds_ago(request.resolved_ts)
        on = f"region {request.id} {_at(feed, request)}, {behind:.0f} s behind{_of(slow)}"
        yield Wait(request.subscription.ref.name, on, moments.of(request.resolved_ts))


def _uninitialised(feed: EventFeed, requests: Sequence[Request]) -> Iterator[Wait]:
    for request in nsmallest(NAMED, requests, key=lambda request: request.since):
        doing = "its incremental scan" if request.request_id else "being asked for"
        on = f"region {request.id} {_at(feed, request)}: {doing}{_of(requests)}"
        yield Wait(request.subscription.ref.name, on, request.since)


def _of(all_: Sequence[object]) -> str:
    """Return " (one of n like that)"; empty if all are named."""
    return f" (one of {len(all_)} like that)" if len(all_) > NAMED else ""


def _at(feed: EventFeed, request: Request) -> str:
    store = feed.stores.get(request.store_id)
    if store is None:
        return "without a store"
    return f"at store {store.id} ({store.last_address or 'not connected'})"


def _holes(feed: EventFeed, moments: Moments) -> Iterator[Wait]:
    """Yield a wait for keys that no region holds, unless `_failed` explains them."""
    failing = _failing(feed)
    found = [
        (moments.of(ts), s, hole)
        for s in feed.subscriptions.values()
        if s not in failing
        for hole, ts in s.lock.free()
    ]
    for since, subscription, hole in nsmallest(NAMED, found, key=lambda each: each[0]):
        keys = "all of its keys" if hole == subscription.span else f"its keys {hole}"
        on = f"a region to be found for {keys}{_of(found)}"
        yield Wait(subscription.ref.name, on, max(since, subscription.since))


def _failing(feed: EventFeed) -> dict[Subscription, Failure]:
    """Return the longest-delayed failures of the retry limiter, one per subscription."""
    found: dict[Subscription, Failure] = {}
    for failure in feed.failures.limiter.first(PARKED):
        if not failure.subscription.stopped:
            found.setdefault(failure.subscription, failure)
    return found


def _failed(feed: EventFeed, moments: Moments) -> Iterator[Wait]:
    failing, counts = _failing(feed), feed.failures.counts
    for subscription, failure in islice(failing.items(), NAMED):
        reason = failure.action.reason
        where = f" at store {failure.store_id} ({failure.address})" if failure.address else ""
        on = f"the next try of region {failure.region_id}{where}, which fails with {reason} ({counts[reason]}"
        complete = max((ts for _, ts in subscription.lock.free()), default=0)
        since = max(moments.of(complete), subscription.since)
        yield Wait(subscription.ref.name, f"{on} such failures so far){_of([*failing])}", since)


def _locks(held: Iterable[HeldLock], moments: Moments) -> Iterator[Wait]:
    for lock in nsmallest(NAMED, held, key=lambda lock: lock.start_ts):
        begun = datetime.fromtimestamp(physical_ms(lock.start_ts) / 1000, UTC)
        on = (
            f"the transaction {lock.start_ts} to end, which began at {begun:%Y-%m-%d %H:%M:%S} UTC and has"
            f" {lock.ttl_ms / 1000:.0f} s; its lock is on {_row(lock)}"
        )
        yield Wait(f"region {lock.region_id}", on, moments.of(lock.start_ts))


def _row(lock: HeldLock) -> str:
    try:
        table_id, handle = decode_record_key(lock.key)
    except ValueError:
        return f"the key {lock.key.hex()}"
    row = handle.hex() if isinstance(handle, bytes) else handle
    return f"row {row} of table {table_id}"


def _limits(feed: EventFeed, uninitialised: Iterable[Request]) -> Iterator[Wait]:
    now = feed.clock.now()
    queued: dict[object, float] = {}
    for request in uninitialised:
        if not request.token:
            queued[request.store_id] = min(queued.get(request.store_id, now), request.since)
    for store, (used, waiting) in feed.limiter.statistics().items():
        if waiting:
            on = f"one of {used} incremental scans to end"
            yield Wait(f"{waiting} regions of store {store}", on, queued.get(store, now))
    if len(feed.divider):
        since = min((s.since for s in feed.subscriptions.values() if s.lock.free()), default=now)
        yield Wait(f"{len(feed.divider)} spans", "PD, to be divided into regions", since)


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
