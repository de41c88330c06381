"""One feed against the emulator: what comes, and that it still comes after whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tidemill.codec.tidb.key import record_key
from tidemill.emulator.cluster import Cluster
from tidemill.errors import InvariantViolated, SourceError
from tidemill.events import DELETE, PUT
from tidemill.puller.tikv.feed.options import EventFeedOptions
from tidemill.testing.progress import STALL_SECONDS

from .rig import Rig

TABLE = 5
ROWS = 40


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., tuple[Cluster, Rig]]]:
    """A cluster with ticks every 20 ms and a rig, closed afterwards."""
    with ExitStack() as stack:

        def build(feed: EventFeedOptions | None = None, **options: Any) -> tuple[Cluster, Rig]:
            cluster = stack.enter_context(Cluster(**{"stores": 3, "tick_seconds": 0.02, **options}))
            return cluster, stack.enter_context(Rig(cluster, tmp_path / "scratch", feed=feed))

        yield build


class Written:
    """Writes rows, and knows what must come of them."""

    def __init__(self, cluster: Cluster, table: int = TABLE) -> None:
        self.cluster = cluster
        self.table = table
        self.expected: set[tuple[int, bytes, bytes]] = set()
        self.last = 0

    def write(self, text: str, rows: range = range(ROWS)) -> int:
        values = [("put", record_key(self.table, row), f"{text} {row}".encode()) for row in rows]
        self.last = self.cluster.write(values)
        self.expected |= {(self.last, key, value) for _, key, value in values}
        return self.last

    def check(self, rig: Rig) -> None:
        """Everything has come, as often as it may, and in an order that holds."""
        rig.until_resolved(self.last, self.table)
        collected = rig.tables[self.table]
        found = {(c.commit_ts, c.key, c.value) for c in collected.changes if c.commit_ts <= self.last}
        assert found == self.expected
        collected.check()


def test_a_change_comes_as_the_store_tells_it(make):
    cluster, rig = make()
    table = rig.add(TABLE)
    key = record_key(TABLE, 1)
    first = cluster.write([("put", key, b"one")])
    second = cluster.write([("put", key, b"two")])
    third = cluster.write([("delete", key, b"")])
    rig.until_resolved(third)
    found = sorted(table.changes)
    assert [c.commit_ts for c in found] == [first, second, third]
    assert [c.op for c in found] == [PUT, PUT, DELETE]
    assert [(c.value, c.old_value) for c in found] == [(b"one", b""), (b"two", b"one"), (b"", b"two")]
    assert all(c.key == key and c.region_id for c in found)


def test_only_what_is_above_the_checkpoint_comes(make):
    cluster, rig = make()
    written = Written(cluster)
    checkpoint = written.write("before")
    written.expected.clear()
    written.write("after")
    rig.add(TABLE, checkpoint)
    written.check(rig)


def test_a_transaction_that_ended_at_the_checkpoint_and_still_locks_keys_is_none_of_its_changes(make):
    """Its primary key is committed, below the checkpoint; the commit of the other key comes live."""
    cluster, rig = make()
    primary, other = record_key(TABLE, 1), record_key(TABLE, 2)
    start = cluster.tso()
    cluster.prewrite(start, [("put", primary, b"before"), ("put", other, b"before")], ttl_ms=3_600_000)
    ended = cluster.commit(start, [primary])
    rig.add(TABLE, cluster.tso())
    rig.eventually(lambda: rig.requests and all(request.initialised for request in rig.requests))
    cluster.commit(start, [other], ended)
    written = cluster.write([("put", other, b"after")])
    rig.until_resolved(written)
    assert [change.value for change in rig.tables[TABLE].changes] == [b"after"]


def test_tables_of_one_region_share_a_stream(make):
    cluster, rig = make(stores=1)
    tables = [Written(cluster, table) for table in (5, 6, 7)]
    for table in tables:
        table.write("first")
        rig.add(table.table)
    for table in tables:
        table.write("second")
    for table in tables:
        table.check(rig)
    found = rig.puller.statistics()
    assert (found.tables, found.stores, found.streams) == (3, 1, 1)


def test_a_table_may_come_go_and_come_again(make):
    cluster, rig = make(stores=1)
    written = Written(cluster)
    for round_number in range(5):
        checkpoint = written.write(f"round {round_number}")
        rig.add(TABLE, checkpoint - 1)
        rig.until_resolved(checkpoint)
        assert {c.commit_ts for c in rig.tables[TABLE].changes} == {checkpoint}
        rig.remove(TABLE)
    assert rig.puller.statistics().tables == 0


def test_a_table_that_is_there_is_refused_and_one_that_is_not_cannot_go(make):
    _, rig = make()
    rig.add(TABLE)
    with pytest.raises(ValueError, match="table 5 is pulled already"):
        rig.add(TABLE)
    with pytest.raises(KeyError):
        rig.remove(6)


FAULTS = [
    "split t5/20",
    "transfer_leader @t5/1",
    "store_down",
    "drop_streams",
    "cut_streams",
    "fail_feed @t5/1 not_leader",
    "fail_feed @t5/1 epoch_not_match",
    "fail_feed @t5/1 region_not_found",
    "fail_feed @t5/1 server_is_busy",
    "fail_feed @t5/1 congested",
    "fail_feed @t5/1 unknown",
    "pd_leader",
]


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost_by(make, fault):
    cluster, rig = make(pd_members=2)
    written = Written(cluster)
    rig.add(TABLE)
    written.write("first")
    written.check(rig)
    play(cluster, fault)
    written.write("second")
    written.check(rig)


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost_during_a_scan_by(make, fault):
    cluster, rig = make(pd_members=2, scan_rows=4)
    written = Written(cluster)
    written.write("first", range(400))
    cluster.hold_scans()
    rig.add(TABLE)
    until_registered(cluster, 1)
    cluster.free_scans()
    play(cluster, fault)
    written.write("second")
    written.check(rig)


@pytest.mark.parametrize(
    "error", ["not_leader", "epoch_not_match", "region_not_found", "server_is_busy", "congested", "unknown"]
)
def test_a_request_that_fails_is_made_again(make, error):
    cluster, rig = make()
    written = Written(cluster)
    written.write("first")
    cluster.fail_next(cluster.region_of(record_key(TABLE, 1)), error, 5, "feed")
    rig.add(TABLE)
    written.check(rig)
    assert sum(rig.puller.statistics().failures.values()) == 5


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        ("duplicate_request", InvariantViolated, "asked for twice"),
        ("compatibility", SourceError, "at least version 99.0.0"),
        ("cluster_id_mismatch", SourceError, "belongs to cluster"),
    ],
)
def test_an_error_that_no_retry_cures_ends_the_feed(make, error, kind, sentence):
    cluster, rig = make()
    cluster.fail_next(cluster.region_of(record_key(TABLE, 1)), error, 1, "feed")
    rig.add(TABLE)
    with pytest.raises(kind, match=sentence):
        rig.until(lambda: False)
    rig.failures.clear()


def test_regions_that_merge_are_pulled_as_one(make):
    cluster, rig = make()
    written = Written(cluster)
    written.write("first")
    left, _ = cluster.split(record_key(TABLE, 20))
    rig.add(TABLE)
    written.check(rig)
    cluster.merge(left)
    written.write("second")
    written.check(rig)
    assert rig.puller.statistics().total.regions == 1


def test_a_store_that_comes_back_is_asked_again(make):
    cluster, rig = make(stores=1)
    written = Written(cluster)
    rig.add(TABLE)
    written.write("first")
    written.check(rig)
    cluster.store_down(1)
    cluster.store_up(1)
    written.write("second")
    written.check(rig)


def test_a_table_may_go_while_its_scan_is_under_way(make):
    cluster, rig = make(stores=1)
    stays = Written(cluster, 6)
    cluster.hold_scans()
    rig.add(TABLE)
    rig.add(6)
    until_registered(cluster, 2)
    rig.remove(TABLE)
    until_registered(cluster, 1)
    cluster.free_scans()
    stays.write("here")
    stays.check(rig)
    assert rig.tables[TABLE].changes == []
    assert rig.puller.statistics().initialising == 0


def test_stopping_does_not_wait_for_streams_that_hang(make):
    cluster, rig = make(stores=2)
    written = Written(cluster)
    rig.add(TABLE)
    written.write("first")
    written.check(rig)
    cluster.pause_streams()
    cluster.slow_store(1, 3600)
    cluster.slow_store(2, 3600)
    rig.remove(TABLE)
    rig.puller.stop()
    rig.client.stop()


def until_registered(cluster: Cluster, count: int) -> None:
    """Wait until the stores know a given number of subscriptions."""
    feeds = [store.change_data for store in cluster.stores.values()]

    async def until() -> None:
        while sum(len(each.subscriptions) for feed in feeds for each in feed.connections) != count:
            await asyncio.sleep(0.002)

    cluster._loop.run(asyncio.wait_for(until(), STALL_SECONDS))


def play(cluster: Cluster, fault: str) -> None:
    if fault == "store_down":
        region = cluster.region_of(record_key(TABLE, 1))
        leader = cluster._call(lambda: cluster.topology.region(region).leader)
        cluster.store_down(leader)
    else:
        cluster.play(fault)
