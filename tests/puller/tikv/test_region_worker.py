"""A region worker with its shard workers, in a seeded system: what it sends to subscriptions and reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidemill.actors import Failed, PooledActor, SeededSystem
from tidemill.codec.proto import cdcpb, errorpb
from tidemill.codec.tidb.key import encode_bytes, record_key
from tidemill.errors import InvariantViolated, SourceError
from tidemill.puller.tikv.feed.advance import Advancer, DirtySet
from tidemill.puller.tikv.feed.error_table import Reaction
from tidemill.puller.tikv.feed.messages import EventReceived, Forget, Registered, StreamEnded
from tidemill.puller.tikv.feed.options import EventFeedOptions
from tidemill.puller.tikv.feed.region_worker import RegionWorker, WorkerCounts
from tidemill.puller.tikv.feed.reports import Initialised, Lost, RegionBroken
from tidemill.puller.tikv.feed.request import Request, Subscription
from tidemill.puller.tikv.feed.span_puller import Pulled
from tidemill.puller.tikv.match.spill import PrewriteMemory as Spill
from tidemill.puller.tikv.span import Span, table_span
from tidemill.puller.tikv.topology import RegionInfo
from tidemill.store.store import Store

PREWRITE, COMMIT, ROLLBACK, COMMITTED, INITIALIZED = 1, 2, 3, 4, 5


class Keeper(PooledActor):
    def __init__(self, kept: list[Any]) -> None:
        self._kept = kept

    def on_receive(self, message: Any) -> None:
        self._kept.append(message)


class Worker:
    """A region worker of one store, told what the loop's thread would tell it."""

    def __init__(self, directory: Path, seed: int = 1, slow: int = 0, **options: Any) -> None:
        self.system = SeededSystem(seed)
        self.reports: list[Any] = []
        self.failures: list[Failed] = []
        self.arrived: list[Pulled] = []
        self.counts = WorkerCounts()
        self._scratch = Store(directory)
        self.subscription_ref = self.system.spawn(Keeper, self.arrived, capacity=slow or 1 << 16)
        supervisor = self.system.spawn(Keeper, self.failures)
        self.options = EventFeedOptions(**options)
        reports = SimpleNamespace(put=self.reports.append)
        dirty = DirtySet()
        dirty.reader = self.system.spawn(Advancer, dirty, self.options, supervisor=supervisor)
        self.ref = self.system.spawn(
            RegionWorker,
            1,
            reports,
            dirty,
            Spill(self._scratch),
            self.options,
            self.counts,
            capacity=self.options.mailbox,
            name="worker",
            supervisor=supervisor,
        )
        self.stream = self.new_stream()
        self.subscription = Subscription(table_span(5), 0, self.subscription_ref, 0.0)

    def new_stream(self, multiplexing: bool = True) -> Any:
        return Stream(multiplexing)

    def close(self) -> None:
        self.system.stop(0.0)
        self._scratch.close()

    def register(self, region_id: int, request_id: int = 100, ts: int = 0) -> Request:
        start, end = (encode_bytes(record_key(5, number)) for number in (region_id, region_id + 1))
        region = RegionInfo(region_id, start, end, 1, 1, b"")
        request = Request(self.subscription, region, Span(start, end), 0.0)
        for former in [r for r in self.subscription.requests if r.id == region_id]:
            self.subscription.lock.unlock(former, ts)
        self.subscription.lock.lock(request)
        request.begin_at(ts)
        request.request_id = request_id
        self.ref.tell(Registered(self.stream, request))
        return request

    def tell(self, *events: Any, resolved: tuple[Iterable[int], int, int] | None = None) -> None:
        message = cdcpb.ChangeDataEvent(events=events)
        if resolved is not None:
            regions, ts, request_id = resolved
            message.resolved_ts.CopyFrom(
                cdcpb.ResolvedTs(regions=list(regions), ts=ts, request_id=request_id)
            )
        self.ref.tell(EventReceived(self.stream, message.SerializeToString()))

    def run(self, seconds: float = 0.2) -> None:
        self.system.run(seconds)

    @property
    def changes(self) -> list[tuple[int, bytes]]:
        return [(c.commit_ts, c.key[-1:]) for message in self.arrived for c in message.changes]

    @property
    def resolved(self) -> list[tuple[int, int]]:
        """Region and ts, whenever it is another than before."""
        found: list[tuple[int, int]] = []
        last: dict[int, int] = {}
        for message in self.arrived:
            for region, _, ts in message.resolved:
                if last.get(region) != ts:
                    found.append((region, ts))
                last[region] = ts
        return found


class Stream:
    """A worker's view of a StoreStream."""

    def __init__(self, multiplexing: bool) -> None:
        self.multiplexing = multiplexing
        self.groups: dict[int, Any] = {}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    with ExitStack() as stack:

        def build(**options: Any) -> Worker:
            worker = Worker(tmp_path / f"scratch{len(made)}", **options)
            made.append(worker)
            stack.callback(worker.close)
            return worker

        made: list[Worker] = []
        yield build


def row(kind: int, key: int = 1, start: int = 0, commit: int = 0, value: bytes = b"v") -> dict[str, Any]:
    if kind == INITIALIZED:
        return {"type": kind}
    found = {"type": kind, "key": record_key(5, key), "start_ts": start, "commit_ts": commit, "op_type": 1}
    return {**found, "value": value if kind in (PREWRITE, COMMITTED) else b""}


def rows(region: int, *entries: dict[str, Any], request: int = 100) -> Any:
    return cdcpb.Event(region_id=region, request_id=request, entries={"entries": entries})


def test_committed_rows_are_sent_on_and_the_scan_s_end_is_reported(make):
    worker = make()
    request = worker.register(1)
    worker.tell(rows(1, row(COMMITTED, 7, 5, 6)), rows(1, row(INITIALIZED)))
    worker.run()
    assert worker.changes == [(6, b"\x07")]
    assert worker.reports == [Initialised(request)]


def test_a_resolved_ts_counts_only_once_the_region_is_initialised(make):
    worker = make()
    worker.register(1)
    worker.tell(resolved=([1], 50, 100))
    worker.run()
    assert worker.resolved == []
    worker.tell(resolved=([1], 60, 100))
    worker.tell(rows(1, row(INITIALIZED)))
    worker.run()
    assert worker.resolved == []
    worker.tell(resolved=([1], 70, 100))
    worker.run()
    assert worker.resolved == [(1, 70)]


def test_a_resolved_ts_never_goes_back_but_is_counted(make):
    worker = make()
    request = worker.register(1)
    worker.tell(rows(1, row(INITIALIZED)), resolved=([1], 70, 100))
    worker.run()
    for ts in (60, 70):
        worker.tell(resolved=([1], ts, 100))
        worker.run()
    assert worker.resolved == [(1, 70)]
    assert request.stall_count == 2
    worker.tell(resolved=([1], 71, 100))
    worker.run()
    assert request.stall_count == 0


def test_a_resolved_ts_of_an_old_store_comes_as_an_event(make):
    worker = make()
    worker.register(1)
    worker.tell(rows(1, row(INITIALIZED)))
    worker.tell(cdcpb.Event(region_id=1, request_id=100, resolved_ts=33))
    worker.run()
    assert worker.resolved == [(1, 33)]


def test_events_of_a_former_request_or_of_an_unknown_region_are_dropped(make):
    worker = make()
    worker.register(1, request_id=101)
    worker.tell(rows(1, row(COMMITTED, 1, 5, 6), request=100))
    worker.tell(rows(2, row(COMMITTED, 2, 5, 6), request=101))
    worker.tell(rows(1, row(COMMITTED, 3, 5, 6), request=101))
    worker.run()
    assert worker.changes == [(6, b"\x03")]
    assert worker.counts.stale == 2


def test_without_multiplexing_the_request_id_of_events_still_counts(make):
    worker = make()
    worker.stream = worker.new_stream(multiplexing=False)
    worker.register(1, request_id=101)
    worker.tell(rows(1, row(COMMITTED, 1, 5, 6), request=100))
    worker.tell(rows(1, row(INITIALIZED), request=101), resolved=([1], 9, 0))
    worker.run()
    assert worker.changes == []
    assert worker.resolved == [(1, 9)]


def test_a_commit_at_or_below_the_resolved_ts_ends_the_feed(make):
    worker = make()
    worker.register(1)
    worker.tell(rows(1, row(INITIALIZED)), resolved=([1], 70, 100))
    worker.run()
    worker.tell(rows(1, row(COMMITTED, 1, 60, 70)))
    worker.run()
    assert [type(failed.error) for failed in worker.failures] == [InvariantViolated]
    assert worker.changes == []


def test_bytes_that_are_no_event_end_the_feed(make):
    worker = make()
    worker.ref.tell(EventReceived(worker.stream, b"\xff\xff"))
    worker.run()
    assert [type(failed.error) for failed in worker.failures] == [SourceError]


def test_a_commit_without_prewrite_breaks_only_its_region(make):
    worker = make()
    first, _ = worker.register(1), worker.register(2)
    worker.tell(rows(1, row(INITIALIZED)), rows(2, row(INITIALIZED)))
    worker.tell(rows(1, row(COMMIT, 1, 5, 6)), rows(2, row(COMMITTED, 2, 5, 6)))
    worker.tell(rows(1, row(COMMITTED, 3, 7, 8)))
    worker.run()
    broken = [report for report in worker.reports if isinstance(report, RegionBroken)]
    assert [(report.request, report.action.reason, report.by_store) for report in broken] == [
        (first, "PrewriteNotMatch", False)
    ]
    assert broken[0].action.wait == 1.0
    assert worker.changes == [(6, b"\x02")]


def test_messages_are_cut_by_number_and_by_bytes(make):
    worker = make()
    worker.register(1)
    worker.tell(rows(1, *[row(COMMITTED, 1, at, at + 1) for at in range(1, 2501)]))
    worker.run()
    assert [len(message.changes) for message in worker.arrived] == [1024, 1024, 452]
    worker.arrived.clear()
    worker.tell(rows(1, *[row(COMMITTED, 1, at, at + 1, b"v" * 300_000) for at in range(1, 9)]))
    worker.run()
    assert [len(message.changes) for message in worker.arrived] == [3, 3, 2]


def test_an_error_of_the_store_breaks_the_region_for_good(make):
    worker = make()
    request = worker.register(1)
    error = cdcpb.Error(region_not_found=errorpb.RegionNotFound(region_id=1))
    worker.tell(cdcpb.Event(region_id=1, request_id=100, error=error))
    worker.tell(rows(1, row(COMMITTED, 3, 7, 8)))
    worker.run()
    assert [(report.request, report.action.reason) for report in worker.reports] == [
        (request, "RegionNotFound")
    ]
    assert worker.changes == []


def test_the_requests_of_a_stream_that_ended_are_lost_with_what_they_have(make):
    worker = make()
    first, second = worker.register(1), worker.register(2)
    worker.tell(rows(1, row(INITIALIZED)), resolved=([1], 70, 100))
    worker.run()
    worker.ref.tell(Forget(worker.stream, second))
    action = Reaction("send_failed", "UNAVAILABLE")
    worker.ref.tell(StreamEnded(worker.stream, action))
    worker.run()
    assert worker.reports[1:] == [Lost(worker.stream, [first], action)]
    assert first.resolved_ts == 70


def test_a_full_subscription_stops_the_worker(make):
    worker = make(slow=1, mailbox=4)
    worker.register(1)
    worker.run()
    process = worker.subscription_ref.actor_inbox
    process.scheduled = True  # as if it were in a long turn
    told = 0
    for commit in range(10, 40):
        event = cdcpb.ChangeDataEvent(events=[rows(1, row(COMMITTED, 1, commit - 1, commit))])
        told += worker.ref.offer(EventReceived(worker.stream, event.SerializeToString()))
        worker.run()
    assert told == 6  # one in the mailbox, one in the outbox, four before the worker
    process.schedule()
    worker.run()
    assert [ts for ts, _ in worker.changes] == list(range(10, 16))


@pytest.mark.parametrize("seed", range(40))
def test_regions_stay_in_order_while_handles_share_the_work(make, seed):
    worker = make(seed=seed, mailbox=8, high_water=0.5, low_water=0.2, shard_workers=3)
    regions = range(1, 8)
    for region in regions:
        worker.register(region)
        worker.tell(rows(region, row(INITIALIZED)))
    expected = []
    ts = 10
    for _ in range(60):
        for region in regions:
            ts += 2
            worker.tell(rows(region, row(PREWRITE, region, ts - 1)))
            worker.tell(rows(region, row(COMMIT, region, ts - 1, ts)))
            expected.append((ts, bytes([region])))
        worker.tell(resolved=(regions, ts, 100))
        if ts % 5 == 0:
            worker.run(0.06)
    worker.run()
    assert worker.failures == []
    assert worker.counts.shared > 0
    assert sorted(worker.changes) == expected
    seen: dict[int, int] = {}
    for message in worker.arrived:
        for change in message.changes:
            assert change.commit_ts > seen.get(change.region_id, 0)
        for region, _, resolved in message.resolved:
            assert resolved >= seen.get(region, 0)
            seen[region] = resolved
    assert seen == dict.fromkeys(regions, ts)


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_s_end_waits_for_the_shard_workers(make, seed):
    worker = make(seed=seed, mailbox=8, high_water=0.0, low_water=0.0, shard_workers=3)
    requests = [worker.register(region) for region in range(1, 6)]
    for region in range(1, 6):
        worker.tell(rows(region, row(INITIALIZED)))
    for ts in range(10, 100, 2):
        for region in range(1, 6):
            worker.tell(rows(region, row(COMMITTED, region, ts - 1, ts)))
    worker.ref.tell(StreamEnded(worker.stream, Reaction("send_failed", "UNAVAILABLE")))
    worker.run()
    assert worker.counts.shared > 0
    assert len(worker.changes) == 45 * 5
    assert worker.reports[-1].requests == requests
    assert worker.stream.groups == {}
