"""Explanations of a slow or stuck TiKV feed: what waits, on what, since when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest, nsmallest
from itertools import islice
from typing import Final

from ...actors import ActorStatistics, Waiting
from ...codec.tidb.key import decode_record_key
from ...events import ActorName, Ts, Wait, WaitKind, compose_ts, physical_ms, room_wait
from .feed.event_feed import EventFeed
from .feed.failures import Failure
from .feed.lock_resolver import HeldLock, LockResolver
from .feed.request import Request, Subscription

DDL_TABLE_ID: Final = 0
"""Id that stands for the schema's job queue: tables have higher ids."""
NAMED: Final = 3
"""Maximum number of items named per kind, the worst first."""
PARKED: Final = 100
"""Maximum number of delayed failures of the retry limiter that are examined."""
SLOW_SECONDS: Final = 20.0
"""Lag above which an initialised region is slow (TiCDC's value): the log names it."""
BEHIND_SECONDS: Final = 5.0
"""Lag above which an explanation names a region: stores resolve about once a second."""


def explain(feed: EventFeed, resolver: LockResolver, now_ts: Ts) -> list[Wait]:
    """Return the waits of a feed; empty if there are none. Call in the loop's thread."""
    requests = _requests(feed)
    moments = Moments(feed.clock.now(), now_ts)
    uninitialised = [r for r in requests if not r.initialised]
    return [
        *_slow(feed, requests, moments, BEHIND_SECONDS),
        *_uninitialised(feed, uninitialised, moments.now),
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
        *_uninitialised(feed, [r for r in requests if not r.initialised and r.since < horizon], moments.now),
        *_holes(feed, moments),
    ]


class Moments:
    """PD's time and the clock's `now()` at one moment, to convert a ts to a clock time."""

    def __init__(self, now: float, now_ts: Ts) -> None:
        self.now = now
        self._now_ms = physical_ms(now_ts)

    def seconds_ago(self, ts: Ts) -> float:
        return max(0.0, (self._now_ms - physical_ms(ts)) / 1000)

    def before(self, seconds: float) -> Ts:
        return compose_ts(max(0, self._now_ms - round(seconds * 1000)))


def _requests(feed: EventFeed) -> list[Request]:
    return [request for subscription in feed.subscriptions.values() for request in subscription.requests]


def slowness(wait: Wait) -> str:
    """Return a line for the log about what `slow_regions` found."""
    where = f"region {wait.region} at {wait.address or 'no store'}" if wait.region else wait.on
    return f"table {wait.table_id} has waited {wait.seconds:.0f} s for {where}: {wait.reason or wait.kind}"


def _slow(feed: EventFeed, requests: Iterable[Request], moments: Moments, seconds: float) -> Iterator[Wait]:
    horizon = moments.before(seconds)
    slow = [request for request in requests if request.initialised and request.resolved_ts < horizon]
    for request in nsmallest(NAMED, slow, key=lambda request: request.resolved_ts):
        yield _wait(feed, request, "region", moments.seconds_ago(request.resolved_ts), len(slow))


def _uninitialised(feed: EventFeed, requests: Sequence[Request], now: float) -> Iterator[Wait]:
    for request in nsmallest(NAMED, requests, key=lambda request: request.since):
        doing = "its incremental scan" if request.request_id else "being asked for"
        yield _wait(feed, request, "scan", now - request.since, len(requests), doing)


def _wait(
    feed: EventFeed, request: Request, kind: WaitKind, seconds: float, count: int, reason: str = ""
) -> Wait:
    """Return the wait of a region at its store; `count` regions wait for the same reason."""
    store = feed.stores.get(request.store_id)
    return Wait(
        str(request.subscription.ref.name),
        kind,
        seconds,
        table_id=_table_id(request.subscription),
        reason=reason,
        count=count,
        region=request.id,
        store=0 if store is None else store.id,
        address="" if store is None else store.last_address,
    )


def _table_id(subscription: Subscription) -> int | None:
    name = subscription.ref.name
    return name.table_id if isinstance(name, ActorName) else DDL_TABLE_ID


def _holes(feed: EventFeed, moments: Moments) -> Iterator[Wait]:
    """Yield a wait for keys that no region holds, unless `_failed` explains them."""
    failing = _failing(feed)
    gaps = [
        (moments.seconds_ago(ts), s, hole)
        for s in feed.subscriptions.values()
        if s not in failing
        for hole, ts in s.lock.free()
    ]
    for seconds, subscription, hole in nlargest(NAMED, gaps, key=lambda each: each[0]):
        yield Wait(
            str(subscription.ref.name),
            "lookup",
            min(seconds, moments.now - subscription.since),
            table_id=_table_id(subscription),
            on="all of its keys" if hole == subscription.span else f"its keys {hole}",
            count=len(gaps),
        )


def _failing(feed: EventFeed) -> dict[Subscription, Failure]:
    """Return one failure of each subscription that lacks keys by it: the longest delayed, or the last."""
    failures: dict[Subscription, Failure] = {}
    for failure in [*feed.failures.limiter.first(PARKED), *feed.failures.recent()]:
        if not failure.subscription.stopped and _lacking(failure.subscription):
            failures.setdefault(failure.subscription, failure)
    return failures


def _lacking(subscription: Subscription) -> list[Ts]:
    """Return up to where the keys are complete that no region serves, by part."""
    asked = [request.checkpoint_ts for request in subscription.requests if not request.initialised]
    return [ts for _, ts in subscription.lock.free()] + asked


def _failed(feed: EventFeed, moments: Moments) -> Iterator[Wait]:
    failing, counts = _failing(feed), feed.failures.counts
    for subscription, failure in islice(failing.items(), NAMED):
        reason = failure.action.reason
        complete = max(_lacking(subscription), default=0)
        yield Wait(
            str(subscription.ref.name),
            "region retry",
            min(moments.seconds_ago(complete), moments.now - subscription.since),
            table_id=_table_id(subscription),
            reason=str(reason),
            count=counts[reason],
            region=failure.region_id,
            store=failure.store_id,
            address=failure.address,
            limit=len(failing),
        )


def _locks(held: Iterable[HeldLock], moments: Moments) -> Iterator[Wait]:
    for lock in nsmallest(NAMED, held, key=lambda lock: lock.start_ts):
        table_id, row = _row(lock)
        yield Wait(
            f"region {lock.region_id}",
            "lock",
            moments.seconds_ago(lock.start_ts),
            table_id=table_id,
            row=row,
            region=lock.region_id,
            ts=lock.start_ts,
            ttl_seconds=lock.ttl_ms / 1000,
        )


def _row(lock: HeldLock) -> tuple[int | None, str]:
    try:
        table_id, handle = decode_record_key(lock.key)
    except ValueError:
        return None, f"key {lock.key.hex()}"
    return table_id, f"row {handle.hex() if isinstance(handle, bytes) else handle}"


def _limits(feed: EventFeed, uninitialised: Iterable[Request]) -> Iterator[Wait]:
    now = feed.clock.now()
    queued: dict[object, float] = {}
    for request in uninitialised:
        if not request.token:
            queued[request.store_id] = min(queued.get(request.store_id, now), request.since)
    for store, (used, waiting) in feed.limiter.statistics().items():
        if waiting:
            seconds = now - queued.get(store, now)
            yield Wait("source", "scan turn", seconds, store=int(str(store)), count=waiting, limit=used)
    if len(feed.divider):
        since = min((s.since for s in feed.subscriptions.values() if s.lock.free()), default=now)
        yield Wait("source", "division", now - since, on="PD", count=len(feed.divider))


def _mailboxes(feed: EventFeed) -> Iterator[Wait]:
    now = feed.clock.now()
    for store in feed.stores.values():
        process = store.worker.actor_inbox
        mailbox = ActorStatistics.of(process)
        if mailbox.waiting_on is not None:
            seconds = now - (mailbox.since or 0.0)
            yield room_wait(
                mailbox.name, mailbox.waiting_on, seconds, count=mailbox.depth, limit=mailbox.capacity
            )
        waiting: list[Waiting] = process.waiting()
        for each in waiting[:NAMED]:
            yield room_wait(each.name, mailbox.name, now - each.since, count=each.depth, limit=each.capacity)
