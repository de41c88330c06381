"""The puller as its wiring sees it: begin and end, errors, counts, explanations."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tidemill.actors import ManualClock
from tidemill.codec.tidb.key import record_key
from tidemill.emulator.cluster import Cluster
from tidemill.errors import Retryable
from tidemill.puller.tikv.explain import slow_regions
from tidemill.puller.tikv.feed.options import EventFeedOptions
from tidemill.puller.tikv.span import table_span

from .rig import Collected, Collector, Rig

TABLE = 5


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(stores=2, tick_seconds=0.02) as made:
        yield made


def test_nothing_is_left_after_the_end(cluster, tmp_path):
    before = {thread.name for thread in threading.enumerate()}
    with Rig(cluster, tmp_path) as rig:
        rig.add(TABLE)
        rig.until_resolved(cluster.tso())
        rig.puller.stop()
        rig.puller.stop()
        rig.eventually(lambda: not any("puller" in actor.name for actor in rig.system.statistics().actors))
    gone = before | {"tidemill-clock"}
    assert {thread.name for thread in threading.enumerate() if "tikv" in thread.name} <= gone


def test_a_pd_that_is_away_for_too_long_is_reported_as_retryable(cluster, tmp_path):
    feed = EventFeedOptions(region_retry_seconds=0.0)
    with Rig(cluster, tmp_path, feed=feed, pd_retry_seconds=0.1) as rig:
        rig.add(TABLE)
        rig.until_resolved(cluster.tso())
        cluster.pd_down()
        rig.add(6)
        with pytest.raises(Retryable, match="no answer from PD"):
            rig.until(lambda: False)
        assert [failed.name for failed in rig.failures] == [rig.puller._name]
        rig.failures.clear()


def test_several_spans_may_go_to_one_writer(cluster, tmp_path):
    with Rig(cluster, tmp_path) as rig:
        collected = rig.tables[9] = Collected(9, rig.arrived, rig.changed)
        writer = rig.system.spawn(Collector, collected)
        rig.puller.add(9, [table_span(3), table_span(4)], 0, writer)
        ts = cluster.write([("put", record_key(table, 1), b"v") for table in (3, 4, 5)])
        rig.until_resolved(ts)
        assert {change.key for change in collected.changes} == {record_key(3, 1), record_key(4, 1)}
        rig.remove(9)
        rig.eventually(lambda: not rig.requests)


def test_statistics_say_what_came_and_what_left(cluster, tmp_path):
    cluster.pave([record_key(TABLE, 10)])
    with Rig(cluster, tmp_path) as rig:
        rig.add(TABLE)
        rig.add(6)
        rig.until_resolved(cluster.tso())  # so that both regions' changes come together
        ts = cluster.write([("put", record_key(TABLE, row), b"v") for row in range(20)])
        rig.until_resolved(ts)
        found = rig.puller.statistics()
        total = found.total
        assert found.tables == 2
        assert (total.regions, total.changes, total.fallen_back) == (3, 20, 0)
        assert (total.ingress_commit_ts, total.egress_commit_ts) == (ts, ts)
        assert total.ingress_resolved_ts >= ts
        assert total.egress_resolved_ts >= ts
        assert found.initialising == 0


def test_nothing_waits_while_all_goes_well(cluster, tmp_path):
    with Rig(cluster, tmp_path) as rig:
        rig.add(TABLE)
        rig.until_resolved(cluster.tso())
        assert rig.puller.explain() == []


def test_a_region_that_is_not_initialised_is_named_with_its_store(cluster, tmp_path):
    cluster.hold_scans()
    with Rig(cluster, tmp_path) as rig:
        rig.add(TABLE)
        rig.eventually(lambda: rig.requests and rig.requests[0].request_id)
        region, store = rig.requests[0].id, rig.requests[0].store_id
        rig.eventually(lambda: rig.puller.feed.stores[store].last_address)
        address = cluster.stores[store].server.address
        assert ("scan", region, store, address, "its incremental scan") in [
            (wait.kind, wait.region, wait.store, wait.address, wait.reason) for wait in rig.puller.explain()
        ]
        cluster.free_scans()
        rig.until_resolved(cluster.tso())


def test_a_region_that_fails_is_named_while_it_is_asked_for_again(cluster, tmp_path):
    cluster.hold_scans()
    cluster.fail_next(cluster.region_of(record_key(TABLE, 1)), "not_leader", 1, "feed")
    with Rig(cluster, tmp_path, clock=ManualClock()) as rig:
        rig.add(TABLE)
        rig.eventually(lambda: "NotLeader" in rig.puller.feed.failures.counts)
        rig.eventually(lambda: rig.requests and rig.requests[0].request_id)
        (failing,) = [wait for wait in rig.puller.explain() if wait.kind == "region retry"]
        assert (failing.region, failing.reason) == (rig.requests[0].id, "NotLeader")


def test_keys_that_no_region_holds_are_named(cluster, tmp_path):
    with Rig(cluster, tmp_path) as rig:
        cluster.pd_down()
        rig.add(TABLE)
        rig.eventually(lambda: rig.puller.feed.subscriptions)
        waits = rig.client.run(_slow(rig))
        assert [(wait.kind, wait.on) for wait in waits] == [("lookup", "all of its keys")]
        cluster.pd_up()
        rig.until_resolved(cluster.tso())


def test_slow_regions_are_named_from_the_slowest_on(tmp_path):
    clock = ManualClock()
    with Cluster(stores=1, clock=clock, tick_seconds=None) as cluster:
        cluster.pave([record_key(TABLE, 10), record_key(TABLE, 20)])
        with Rig(cluster, tmp_path, clock=clock) as rig:
            rig.add(TABLE)
            rig.eventually(lambda: len(rig.requests) == 3 and all(r.initialised for r in rig.requests))
            for number, request in enumerate(sorted(rig.requests, key=lambda r: r.span.start)):
                request.resolved_ts = cluster.tso() + number
            clock.advance(3_600)
            found = [wait.region for wait in rig.puller.explain() if wait.kind == "region"]
            assert found == [request.id for request in sorted(rig.requests, key=lambda r: r.resolved_ts)]


async def _slow(rig: Rig):
    return slow_regions(rig.puller.feed, 0, 600.0)
