"""Requests to a store, and the streams that they are sent on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tidemill.codec.proto import cdcpb, kvrpcpb
from tidemill.codec.tidb.key import record_key, record_prefix
from tidemill.emulator import change_data
from tidemill.emulator.cluster import Cluster
from tidemill.puller.tikv.feed.options import EventFeedOptions
from tidemill.puller.tikv.span import table_span

from .rig import Rig

TABLE = 5


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(stores=1, tick_seconds=0.02) as made:
        yield made


@pytest.fixture
def asked(cluster: Cluster) -> list[Any]:
    """The ChangeDataRequests that the store got."""
    feed = cluster.stores[1].change_data
    found: list[Any] = []
    register, deregister = feed._register, feed._deregister

    def on_register(connection: Any, request: Any) -> None:
        found.append(request)
        register(connection, request)

    def on_deregister(connection: Any, request_id: int, region_id: int) -> None:
        found.append((request_id, region_id))
        deregister(connection, request_id, region_id)

    feed._register, feed._deregister = on_register, on_deregister
    return found


def test_a_request_is_what_the_original_sends(cluster, asked, tmp_path):
    region = cluster.region_of(record_key(TABLE, 1))
    with Rig(cluster, tmp_path, feed=EventFeedOptions(filter_loop=True)) as rig:
        rig.add(TABLE, 440_000)
        rig.until_resolved(440_001)
        (request,) = asked
        span = table_span(TABLE)
        expected = cdcpb.ChangeDataRequest(
            header=cdcpb.Header(cluster_id=cluster.options.cluster_id, ticdc_version="8.1.0"),
            region_id=region,
            region_epoch={"conf_ver": 1, "version": 1},
            request_id=request.request_id,
            checkpoint_ts=440_000,
            start_key=span.start,
            end_key=span.end,
            extra_op=kvrpcpb.ExtraOp.ReadOldValue,
            filter_loop=True,
        )
        expected.register.SetInParent()
        assert request == expected
        assert request.request_id > 0
        assert [each.multiplexing for each in cluster.stores[1].change_data.connections] == [True]


def test_a_region_has_a_larger_request_id_each_time(cluster, asked, tmp_path):
    region = cluster.region_of(record_key(TABLE, 1))
    with Rig(cluster, tmp_path) as rig:
        rig.add(TABLE)
        rig.until_resolved(cluster.tso())
        for _ in range(5):
            cluster.fail_feed(region, "congested")
            rig.until_resolved(cluster.tso())
    ids = [request.request_id for request in asked]
    assert len(ids) == 6
    assert ids == sorted(set(ids))


def test_regions_share_a_request_id_so_that_one_resolved_ts_is_for_all(cluster, asked, tmp_path):
    cluster.pave([record_key(TABLE, row) for row in range(10, 200, 10)])
    with Rig(cluster, tmp_path) as rig:
        rig.add(TABLE)
        rig.until_resolved(cluster.tso())
        assert len(asked) == 20
        assert len({request.request_id for request in asked}) == 1


def test_what_is_unsubscribed_is_deregistered(cluster, asked, tmp_path):
    region = cluster.region_of(record_key(TABLE, 1))
    with Rig(cluster, tmp_path) as rig:
        rig.add(TABLE)
        rig.add(6)
        rig.until_resolved(cluster.tso())
        rig.remove(TABLE)
        mine = next(r.request_id for r in asked if r.start_key == table_span(TABLE).start)
        rig.eventually(lambda: (mine, region) in asked)
        rig.until_resolved(cluster.tso(), 6)


def test_at_most_as_many_scans_are_asked_for_as_there_are_tokens(cluster, asked, tmp_path):
    cluster.pave([record_key(TABLE, row) for row in range(10, 200, 10)])
    cluster.hold_scans()
    with Rig(cluster, tmp_path, feed=EventFeedOptions(region_scan_limit=7)) as rig:
        rig.add(TABLE)
        rig.eventually(lambda: len(asked) == 7)
        assert rig.puller.statistics().initialising == 7
        waits = [wait for wait in rig.puller.explain() if wait.kind == "scan turn"]
        assert [(wait.store, wait.count, wait.limit) for wait in waits] == [(1, 13, 7)]
        cluster.free_scans()
        rig.until_resolved(cluster.tso())
        assert len(asked) == 20
        assert rig.puller.statistics().initialising == 0


@pytest.fixture
def old(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A store that doesn't know multiplexing."""
    monkeypatch.setattr(change_data, "FEATURES", set())
    return cluster


def test_an_old_store_is_asked_in_the_old_way(old, asked, tmp_path):
    with Rig(old, tmp_path) as rig:
        rig.add(TABLE)
        ts = old.write([("put", record_key(TABLE, 1), b"one")])
        rig.until_resolved(ts)
        assert [each.multiplexing for each in old.stores[1].change_data.connections] == [False]
        assert [change.value for change in rig.tables[TABLE].changes] == [b"one"]


def test_tables_in_one_region_of_an_old_store_have_streams_of_their_own(old, asked, tmp_path):
    with Rig(old, tmp_path) as rig:
        for table in (5, 6, 7):
            rig.add(table)
        ts = old.write([("put", record_key(table, 1), b"%d" % table) for table in (5, 6, 7)])
        rig.until_resolved(ts)
        for table in (5, 6, 7):
            assert [change.value for change in rig.tables[table].changes] == [b"%d" % table]
        assert rig.puller.statistics().streams == 3
        assert len({request.request_id for request in asked}) == len(asked)


def taken(cluster):
    """How many regions each stream to the store has, the fewest first."""
    return sorted(len(each.subscriptions) for each in cluster.stores[1].change_data.connections)


def test_an_old_store_has_as_many_streams_as_its_fullest_region_has_tables(old, tmp_path):
    """The store takes a region once on a stream: tables of other regions share those that there are."""
    old.pave([record_prefix(table) for table in (8, 10)])
    with Rig(old, tmp_path) as rig:
        for table in (5, 6, 7, 8, 9, 10):
            rig.add(table)
        rig.until_resolved(old.tso())
        assert rig.puller.statistics().streams == 3
        assert taken(old) == [1, 2, 3]


def test_streams_to_an_old_store_do_not_grow_as_tables_come_and_go(old, tmp_path):
    old.pave([record_prefix(8)])
    with Rig(old, tmp_path) as rig:
        rig.add(8)
        for table in (5, 6, 7):
            rig.add(table)
            ts = old.write([("put", record_key(each, table), b"") for each in (table, 8)])
            rig.until_resolved(ts, table, 8)
            rig.remove(table)
            rig.eventually(lambda: taken(old) == [1])  # not the region that nobody asks for any more
        assert rig.puller.statistics().streams == 1
        assert len(rig.tables[8].changes) == 3


def test_on_an_old_store_a_table_comes_and_goes_and_regions_fail(old, asked, tmp_path):
    region = old.region_of(record_key(TABLE, 1))
    with Rig(old, tmp_path) as rig:
        rig.add(6)
        for number in range(4):
            rig.add(TABLE, old.tso())
            ts = old.write([("put", record_key(TABLE, 1), b"%d" % number)])
            rig.until_resolved(ts)
            assert [change.value for change in rig.tables[TABLE].changes] == [b"%d" % number]
            old.fail_feed(region, "server_is_busy")
            rig.until_resolved(old.tso())
            rig.remove(TABLE)
        rig.until_resolved(old.tso(), 6)
        assert "DuplicateRequest" not in rig.puller.statistics().failures


def test_a_store_that_was_upgraded_is_asked_in_the_new_way_without_a_restart(
    old, asked, tmp_path, monkeypatch
):
    def ways():
        return [each.multiplexing for each in old.stores[1].change_data.connections]

    with Rig(old, tmp_path) as rig:
        rig.add(TABLE)
        rig.add(6)
        rig.until_resolved(old.tso())
        assert ways() == [False, False]
        old.store_down(1)
        old.store_up(1)
        rig.until_resolved(old.tso())
        assert ways() == [False, False]
        old.store_down(1)
        monkeypatch.setattr(change_data, "FEATURES", {"stream-multiplexing"})
        old.store_up(1)
        ts = old.write([("put", record_key(TABLE, 1), b"one")])
        rig.until_resolved(ts)
        rig.eventually(lambda: ways() == [True])
        assert [change.value for change in rig.tables[TABLE].changes] == [b"one"]


def test_a_store_of_a_wrong_version_is_not_asked(tmp_path):
    with Cluster(stores=1, tick_seconds=0.02, version="5.0.0") as cluster, Rig(cluster, tmp_path) as rig:
        rig.add(TABLE)
        rig.eventually(lambda: rig.puller.statistics().streams == 1)
        (wait,) = rig.puller.explain()
        assert wait.region == cluster.region_of(record_key(TABLE, 1))
        assert (wait.kind, wait.store, wait.address, wait.reason) == ("scan", 1, "", "being asked for")
