"""The puller of a TiKV cluster; tables are added and removed while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from threading import Lock
from typing import Final

from ...actors import ActorSystem, Failed, PooledActor, PooledRef, Target
from ...errors import Retryable, TidemillError
from ...events import ActorName, Changes, Ts, Wait, compose_ts, physical_ms
from ...store.store import Store as ScratchStore
from ..grpc.loop import sleep
from .client import TikvClient
from .explain import explain, slow_regions, slowness
from .feed.event_feed import EventFeed
from .feed.lock_resolver import LockResolver
from .feed.options import EventFeedOptions
from .feed.reports import FatalReport
from .feed.span_puller import SpanProgress, SpanPuller
from .match.spill import PrewriteMemory as Spill
from .span import Span
from .statistics import TableStatistics, TikvStatistics

log = logging.getLogger("tidemill.puller")

LOOK_SECONDS: Final = 300.0
"""Interval at which slow regions are logged."""
UNINITIALISED_SECONDS: Final = 600.0
"""Incremental scans longer than this are logged."""
EXPLAIN_SECONDS: Final = 5.0
"""Timeout for an explanation; the loop's thread is never blocked for long."""
ANSWER_SECONDS: Final = 1.0
"""Part of it for PD's answer about the time."""

_numbers = count(1)


class ErrorEscalation(PooledActor[Failed | FatalReport]):
    """Fails with the first error of any part of the puller, which so reaches the puller's supervisor."""

    def on_receive(self, message: Failed | FatalReport) -> None:
        raise message.error


class TikvPuller:
    """Sends tables' changes and resolved ts to their writers as Changes; see EventFeed and SpanPuller.

    Thread-safe; actors may call `add` and `remove` in their turns. An error that stops it, a Fatal, a
    Retryable or a bug, fails its actor "puller …", so `supervisor` gets a Failed.
    """

    def __init__(
        self,
        client: TikvClient,
        system: ActorSystem,
        scratch: ScratchStore,
        options: EventFeedOptions | None = None,
        *,
        supervisor: PooledRef[Failed] | None = None,
        max_prewrite_bytes: int = 128 << 20,
        advance: Callable[[Mapping[int, Ts]], None] | None = None,
    ) -> None:
        """`client` must be started and is closed by the caller. `scratch` stores prewrites beyond the memory
        limit.

        `advance` passes on the resolved ts of many tables, by ids above 0, after everything that was sent to
        their writers; most resolved ts are passed this way. Without it all go to the writers.
        """
        self._client = client
        self._system = system
        limits = client.options
        self._options = options or EventFeedOptions(
            region_scan_limit=limits.region_scan_limit,
            region_batch=limits.region_batch,
            region_retry_seconds=limits.region_retry_seconds,
        )
        self._advance_tables = advance
        self._spill = Spill(scratch, max_prewrite_bytes)
        self._name = f"puller {next(_numbers)}"
        self._supervisor = supervisor
        self._lock = Lock()  # guards the tables
        self._tables: dict[int, SpanProgress] = {}
        self._calls: deque[Callable[[], None]] = deque()  # work for the loop's thread
        self._heard = client.clock.now(), 0
        """Time of PD's last timestamp, and that timestamp."""
        self._asking: asyncio.Task[None] | None = None
        self._silent = False
        """True if PD didn't answer the last request for its time."""
        self._stopped = False
        self._over = False

    def start(self) -> None:
        self._escalation = self._system.spawn(
            ErrorEscalation, name=self._name, capacity=64, supervisor=self._supervisor
        )
        self._client.run(self._start())

    async def _start(self) -> None:
        client = self._client
        self.feed = EventFeed(
            client.loop,
            self._system,
            client.cache,
            client.channels,
            self._spill,
            self._options,
            cluster_id=client.pd.cluster_id,
            random=client.random,
            on_error=self.fail,
            supervisor=self._escalation,
            advance=None if self._advance_tables is None else self._advance,
            name=self._name,
        )
        self.resolver = LockResolver(self.feed, client.kv, client.pd, client.clock, self._options)
        self.feed.spawn(self.resolver.run(), "resolve locks")
        self.feed.spawn(self._log_slow(), "log slow regions")

    def add(
        self, table_id: int, spans: Span | Sequence[Span], checkpoint_ts: Ts, writer: Target[Changes]
    ) -> None:
        """Pull the changes of a table above `checkpoint_ts`. Raises ValueError if it is pulled already."""
        spans = (spans,) if isinstance(spans, Span) else tuple(spans)
        with self._lock:
            if table_id in self._tables:
                raise ValueError(f"table {table_id} is pulled already")
            progress = SpanProgress(checkpoint_ts, self._system.clock.now(), table_id)
            ref = self._system.spawn(
                SpanPuller,
                spans,
                checkpoint_ts,
                writer,
                progress,
                capacity=self._options.mailbox,
                name=ActorName(f"{self._name}: table {table_id} ({next(_numbers)})", table_id),
                supervisor=self._escalation,
            )
            progress.ref = ref
            self._tables[table_id] = progress
            self._call(partial(self._subscribe, progress, spans, checkpoint_ts))

    def remove(self, table_id: int) -> None:
        """Stop pulling a table; changes in flight still arrive. Raises KeyError if it isn't pulled."""
        with self._lock:
            table = self._tables.pop(table_id)
            self._call(partial(self._unsubscribe, table))
        table.ref.stop(block=False)

    def statistics(self) -> TikvStatistics:
        """Return the statistics of all tables; takes about a microsecond per table."""
        with self._lock:
            tables = dict(self._tables)
        slowest = min(tables, key=lambda table_id: tables[table_id].egress_resolved_ts, default=0)
        return self._client.run(self._count(tables, slowest), EXPLAIN_SECONDS)

    def explain(self) -> list[Wait]:
        """Return what waits, on what, and since when; empty if nothing waits."""
        self.ask_time()
        return self.waits()

    def ask_time(self) -> None:
        """Ask PD for its time, for `waits`. If it didn't answer the last time, don't wait for its answer."""
        self._client.run(self._ask_time(), EXPLAIN_SECONDS)

    def waits(self) -> list[Wait]:
        """Return the same as `explain` by PD's last known time: checks everything, some microseconds per
        region."""
        return self._client.run(self._waits(), EXPLAIN_SECONDS)

    @property
    def clock_offset(self) -> float | None:
        """PD's time, in Unix seconds, minus the clock's now(); None before PD has told it."""
        since, ts = self._heard
        return physical_ms(ts) / 1000 - since if ts else None

    def stop(self) -> None:
        """Stop pulling. Not to be called in an actor's turn. Idempotent; the client and the actor system stay
        open."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            tables, self._tables = list(self._tables.values()), {}
        self._client.run(self.feed.close())
        for table in tables:
            table.ref.stop(block=False)
        self._escalation.stop(block=False)

    def _advance(self, advanced: Mapping[SpanProgress, Ts]) -> None:
        """Forward resolved ts for tables that still exist: another one may have been added under the same
        id."""
        with self._lock:
            table_of = self._tables.get
            known = {
                table.table_id: ts for table, ts in advanced.items() if table is table_of(table.table_id)
            }
            if known and self._advance_tables is not None:
                self._advance_tables(known)

    # --- in the loop's thread --------------------------------------------------------------------

    def _subscribe(self, table: SpanProgress, spans: Sequence[Span], ts: Ts) -> None:
        table.subscriptions = tuple([self.feed.subscribe(span, ts, table.ref) for span in spans])

    def _unsubscribe(self, table: SpanProgress) -> None:
        for subscription in table.subscriptions:
            self.feed.unsubscribe(subscription)

    def _make_calls(self) -> None:
        while self._calls:
            self._calls.popleft()()

    async def _ask_time(self) -> None:
        if self._asking is None:
            self._asking = self.feed.spawn(self._hear_time(), "ask what time it is")
        seconds = 0.0 if self._silent else ANSWER_SECONDS
        _, pending = await asyncio.wait({self._asking}, timeout=seconds)
        if pending:
            self._silent = True

    async def _hear_time(self) -> None:
        now = self._client.clock.now()
        try:
            self._heard = now, await self._client.pd.tso()
            self._silent = False
        except TidemillError:
            self._silent = True
        finally:
            self._asking = None

    async def _waits(self) -> list[Wait]:
        since, ts = self._heard
        seconds = self._client.clock.now() - since
        silent = Wait("source", "answer", seconds, on=f"PD ({self._client.options.address})")
        now_ts = ts + compose_ts(round(seconds * 1000))
        return [silent] * self._silent + explain(self.feed, self.resolver, now_ts)

    async def _log_slow(self) -> None:
        while True:
            await sleep(self._client.clock, LOOK_SECONDS)
            try:
                now_ts = await self._client.pd.tso()
            except Retryable:
                continue
            for wait in slow_regions(self.feed, now_ts, UNINITIALISED_SECONDS):
                log.warning("%s", slowness(wait))

    async def _count(self, tables: dict[int, SpanProgress], slowest: int) -> TikvStatistics:
        feed = self.feed
        return TikvStatistics(
            tables=len(tables),
            total=_sum(list(tables.values())),
            slowest_table=slowest,
            stores=len(feed.stores),
            streams=sum(len(store.streams) for store in feed.stores.values()),
            initialising=sum(feed.limiter.used(store) for store in feed.stores),
            failures=dict(feed.failures.counts),
            locks_resolved=self.resolver.resolved,
            stale_events=sum(store.counts.stale for store in feed.stores.values()),
        )

    def fail(self, error: BaseException) -> None:
        """Fail with the first error; later ones are its consequences. Any thread."""
        if not self._over and not self._stopped:
            self._over = True
            self._escalation.post(FatalReport(error))

    def _call(self, work: Callable[[], None]) -> None:
        """Run `work` in the loop's thread, with one wake-up for all that wait; called with the lock held."""
        self._calls.append(work)
        if len(self._calls) == 1:
            self._client.loop.call(self._make_calls)


def _sum(tables: Sequence[SpanProgress]) -> TableStatistics:
    return TableStatistics(
        regions=sum(table.regions for table in tables),
        ingress_commit_ts=max((table.ingress_commit_ts for table in tables), default=0),
        egress_commit_ts=max((table.egress_commit_ts for table in tables), default=0),
        ingress_resolved_ts=min((table.ingress_resolved_ts for table in tables), default=0),
        egress_resolved_ts=min((table.egress_resolved_ts for table in tables), default=0),
        changes=sum(table.changes for table in tables),
        fallen_back=sum(table.fallen_back for table in tables),
        since=min((table.since for table in tables), default=0.0),
    )
