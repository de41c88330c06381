"""Locks that were left behind, on a clock that jumps: when they are looked for, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from tidemill.actors import ManualClock
from tidemill.codec.tidb.key import record_key
from tidemill.emulator.cluster import Cluster
from tidemill.puller.tikv.feed.options import EventFeedOptions

from .rig import Rig

TABLE = 5
KEY = record_key(TABLE, 1)


class Still:
    """A cluster and a rig on one clock; resolved ts are sent once a second of it."""

    def __init__(self, cluster: Cluster, rig: Rig, clock: ManualClock) -> None:
        self.cluster = cluster
        self.rig = rig
        self.clock = clock

    def initialise(self) -> None:
        self.rig.add(TABLE)
        self.rig.eventually(lambda: self.rig.requests and all(r.initialised for r in self.rig.requests))

    def second(self) -> None:
        """One passes, and all regions hear a resolved ts; what follows from that has been done."""
        before = {request: (request.stall_count, request.resolved_ts) for request in self.rig.requests}
        self.clock.advance(0.5)
        self.cluster.tick()
        self.rig.eventually(self._told(before))
        self.pass_time(0.5)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and wait until the resolver has looked if a look was due."""
        self.clock.advance(seconds)
        self.rig.eventually(lambda: self.rig.puller.resolver.next_look > self.clock.now())

    def _told(self, before: dict[object, tuple[int, int]]) -> Callable[[], bool]:
        def told() -> bool:
            self.clock.advance(0.01)
            return all(
                before.get(request) != (request.stall_count, request.resolved_ts)
                for request in self.rig.requests
            )

        return told

    @property
    def resolved(self) -> int:
        return self.rig.puller.resolver.resolved


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Still]]:
    with ExitStack() as stack:

        def build(feed: EventFeedOptions | None = None, **options: object) -> Still:
            clock = ManualClock()
            cluster = stack.enter_context(Cluster(stores=1, clock=clock, tick_seconds=None, **options))
            rig = stack.enter_context(Rig(cluster, tmp_path / "scratch", clock=clock, feed=feed))
            return Still(cluster, rig, clock)

        yield build


def test_an_orphaned_lock_is_rolled_back_once_its_region_stood_still_for_20_seconds(make):
    still = make()
    still.initialise()
    still.second()
    still.cluster.leave_lock(KEY, ttl_ms=3_000)
    for _ in range(20):
        still.second()
        assert still.resolved == 0
    for _ in range(6):
        still.second()
    assert still.resolved == 1
    still.second()
    assert still.rig.requests[0].stall_count == 0
    assert still.rig.tables[TABLE].changes == []


def test_a_lock_whose_transaction_was_committed_is_committed(make):
    still = make()
    still.initialise()
    still.second()
    still.cluster.leave_lock(KEY, b"value", ttl_ms=3_000, committed=True)
    for _ in range(30):
        still.second()
    assert still.resolved == 1
    assert (KEY, b"value") in [(c.key, c.value) for c in still.rig.tables[TABLE].changes]


def test_a_living_lock_stays_and_is_named(make):
    still = make()
    still.initialise()
    still.second()
    start = still.cluster.leave_lock(KEY, ttl_ms=3_600_000)
    for _ in range(30):
        still.second()
    assert still.resolved == 0
    held = [wait for wait in still.rig.puller.explain() if wait.kind == "lock" and wait.ts == start]
    assert [wait.region for wait in held] == [still.rig.requests[0].id]
    slow = [wait for wait in still.rig.puller.explain() if wait.kind == "region"]
    assert [(wait.region, wait.store) for wait in slow] == [(still.rig.requests[0].id, 1)]


def test_a_pessimistic_lock_is_left_alone_whatever_has_become_of_its_primary(make):
    """It holds nothing back, and without a primary lock its transaction may live and go on to prewrite."""
    still = make()
    still.initialise()
    still.second()
    held, gone = record_key(TABLE, 2), record_key(TABLE, 3)
    still.cluster.prewrite(still.cluster.tso(), [("pessimistic", held, b"")], primary=gone, ttl_ms=3_000)
    still.cluster.leave_lock(KEY, ttl_ms=3_000)
    for _ in range(30):
        still.second()
    assert still.resolved == 1
    assert list(still.cluster.keyspace.locate_raw(held).shard.locks) == [held]


def test_a_lock_whose_primary_names_another_is_left_alone_and_holds_no_other_up(make, caplog):
    still = make()
    still.initialise()
    still.second()
    start, odd, primary = still.cluster.tso(), record_key(TABLE, 0), record_key(TABLE, 2)
    for key, named in ((odd, primary), (primary, record_key(TABLE, 3))):
        still.cluster.prewrite(start, [("put", key, b"odd")], primary=named, ttl_ms=3_000)
    still.cluster.leave_lock(KEY, ttl_ms=3_000)
    for _ in range(30):
        still.second()
    assert still.resolved == 1
    assert set(still.cluster.keyspace.locate_raw(KEY).shard.locks) == {odd, primary}
    assert f"a lock of transaction {start} names {primary.hex()} as its primary" in caplog.text


def share(cluster, key, number, op="shared_pessimistic"):
    """Let that many transactions hold a key together; none of them lives."""
    for start in [cluster.tso() for _ in range(number)]:
        cluster.prewrite(start, [(op, key, b"")], primary=record_key(TABLE, 9), ttl_ms=3_000)


def test_shared_locks_are_those_of_their_transactions(make):
    """They come wrapped in one that is nobody's: no transaction 0 is rolled back on the empty key."""
    still = make()
    still.initialise()
    still.second()
    shared, waits = record_key(TABLE, 0), record_key(TABLE, 2)
    share(still.cluster, shared, 2, "shared")
    share(still.cluster, shared, 1)
    share(still.cluster, waits, 1)
    still.cluster.leave_lock(KEY, b"value", ttl_ms=3_000, committed=True)
    for _ in range(30):
        still.second()
    shard = still.cluster.keyspace.locate_raw(KEY).shard
    assert still.resolved == 3
    assert [len(locks) for locks in shard.shared.values()] == [1, 1]
    assert not [key for region in still.cluster.keyspace for key in region.shard.rollbacks if not key]
    assert (KEY, b"value") in [(c.key, c.value) for c in still.rig.tables[TABLE].changes]


@pytest.mark.parametrize("number", [1023, 1024, 2500])
def test_a_key_with_many_shared_locks_hides_none_of_those_after_it(make, number):
    still = make()
    still.initialise()
    still.second()
    share(still.cluster, record_key(TABLE, 0), number)
    still.cluster.leave_lock(KEY, ttl_ms=3_000)
    for _ in range(30):
        still.second()
    shard = still.cluster.keyspace.locate_raw(KEY).shard
    assert (still.resolved, len(shard.locks), len(shard.shared[record_key(TABLE, 0)])) == (1, 0, number)


def test_a_region_from_which_nothing_comes_is_not_looked_into(make):
    """Its store is silent: that says nothing of locks."""
    still = make()
    still.initialise()
    still.second()
    still.cluster.leave_lock(KEY, ttl_ms=3_000)
    for _ in range(10):
        still.second()
    for _ in range(8):
        still.clock.advance(5)
        still.rig.eventually(lambda: still.rig.puller.resolver.next_look > still.clock.now())
    assert still.rig.requests[0].stall_count == 9
    assert still.resolved == 0
    still.second()
    for _ in range(5):
        still.second()
    assert still.resolved == 1


def test_a_region_is_not_looked_into_again_within_ten_seconds(make):
    still = make(EventFeedOptions(least_stall_count=1))
    still.initialise()
    still.second()
    still.cluster.leave_lock(KEY, ttl_ms=3_600_000)
    asked = []
    original = still.rig.puller.resolver._resolve

    async def resolve(request, max_ts):
        asked.append(still.clock.now())
        await original(request, max_ts)

    still.rig.puller.resolver._resolve = resolve
    for _ in range(60):
        still.second()
    assert len(asked) == 4
    assert all(later - earlier >= 10 for earlier, later in pairwise(asked))


def test_at_most_so_many_regions_are_looked_into_at_once(make):
    still = make(EventFeedOptions(locks_regions=2))
    still.cluster.pave([record_key(TABLE, row) for row in (10, 20, 30, 40)])
    still.initialise()
    still.second()
    for row in (1, 11, 21, 31, 41):
        still.cluster.leave_lock(record_key(TABLE, row), ttl_ms=3_000)
    found = []
    for _ in range(40):
        still.second()
        if not found or found[-1] != still.resolved:
            found.append(still.resolved)
    assert found == [0, 2, 4, 5]


def test_a_region_silent_for_an_hour_has_its_stream_made_anew(make):
    still = make()
    still.initialise()
    still.second()
    first = still.rig.requests[0]
    still.pass_time(3_590)
    assert still.rig.requests == [first]
    for _ in range(6):  # a look may read the clock at any moment of a longer step
        still.pass_time(5)
    still.rig.eventually(lambda: still.rig.requests and still.rig.requests[0] is not first)
    still.rig.eventually(lambda: all(request.initialised for request in still.rig.requests))
    assert still.rig.puller.statistics().failures == {"Reconnect": 1}
