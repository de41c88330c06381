"""Transactions that commit asynchronously or in one step: what reads see of them, and of those that died."""

from __future__ import annotations

import pytest

from tidemill.actors import ManualClock
from tidemill.codec.proto import kvrpcpb
from tidemill.emulator import Cluster, Rejected
from tidemill.errors import Retryable

from .client import client

PRIMARY, SECOND, THIRD, FOURTH = b"a", b"b", b"c", b"d"
KEYS = [PRIMARY, SECOND, THIRD, FOURTH]
TTL_MS = 3_000


@pytest.fixture
def cluster():
    """Each key but the second lies in a region of its own."""
    with Cluster(clock=ManualClock(), tick_seconds=None) as cluster:
        cluster.split(THIRD)
        cluster.split(FOURTH)
        cluster.start = cluster.tso()
        yield cluster


@pytest.fixture
def c(cluster):
    with client(cluster.pd_address, clock=ManualClock(), store_retry_seconds=0.05) as c:
        yield c


def lock(cluster, *keys, op="put", asynchronous=True):
    """Prewrite as one request of the transaction; the least commit ts."""
    return cluster.prewrite(
        cluster.start,
        [(op, key, b"new" if op == "put" else b"") for key in keys],
        primary=PRIMARY,
        ttl_ms=TTL_MS,
        secondaries=KEYS[1:] if asynchronous else None,
    )


def read(c, *keys):
    """At one ts, once the transaction is over its time."""
    ts = c.run(c.pd.tso())
    return [c.run(c.kv.get(key, ts)) for key in keys]


def expire(cluster):
    cluster.clock.advance(TTL_MS / 1000 + 1)


def written(cluster, key):
    """Commit ts of the versions of a key."""
    return [write.commit_ts for write in cluster.keyspace.locate_raw(key).shard.versions(key)]


@pytest.mark.parametrize("first", KEYS)
def test_with_all_keys_locked_it_is_committed_at_the_greatest_of_their_timestamps(cluster, c, first):
    ends = [lock(cluster, key) for key in (FOURTH, THIRD, SECOND, PRIMARY)]
    assert ends == sorted(set(ends))
    expire(cluster)
    assert read(c, first) == [b"new"]
    assert read(c, *KEYS) == [b"new"] * 4
    assert [written(cluster, key) for key in KEYS] == [[ends[-1]]] * 4


@pytest.mark.parametrize("missing", KEYS[1:])
def test_with_a_key_that_was_never_locked_it_is_rolled_back_and_stays_so(cluster, c, missing):
    for key in KEYS:
        if key != missing:
            lock(cluster, key)
    expire(cluster)
    assert read(c, PRIMARY) == [None]
    assert read(c, *KEYS) == [None] * 4
    with pytest.raises(Rejected):
        lock(cluster, missing)


@pytest.mark.parametrize("pending", KEYS[1:])
def test_a_key_on_which_a_pessimistic_lock_waits_can_no_longer_be_prewritten(cluster, c, pending):
    """If it could, its client would call the transaction committed while others rolled it back."""
    lock(cluster, pending, op="pessimistic", asynchronous=False)
    for key in KEYS:
        if key != pending:
            lock(cluster, key)
    expire(cluster)
    assert read(c, PRIMARY) == [None]
    with pytest.raises(Rejected):
        lock(cluster, pending)
    assert read(c, *KEYS) == [None] * 4


def test_with_a_key_that_is_committed_it_is_committed_at_that_timestamp(cluster, c):
    end = max(lock(cluster, key) for key in KEYS)
    cluster.commit(cluster.start, [THIRD], end + 7)
    expire(cluster)
    assert read(c, *KEYS) == [b"new"] * 4
    assert [written(cluster, key) for key in KEYS] == [[end + 7]] * 4


def test_one_that_went_back_to_ordinary_commit_is_its_primarys_matter(cluster, c):
    for key in KEYS:
        lock(cluster, key, asynchronous=key != THIRD)
    expire(cluster)
    assert read(c, SECOND) == [None]
    assert read(c, *KEYS) == [None] * 4
    with pytest.raises(Rejected):
        cluster.commit(cluster.start, [PRIMARY])


def test_while_it_may_live_it_is_waited_for_and_nothing_is_decided(cluster, c):
    lock(cluster, PRIMARY)
    with pytest.raises(Retryable, match=f"waits for the transaction {cluster.start}"):
        read(c, PRIMARY)
    end = lock(cluster, SECOND, THIRD, FOURTH)
    cluster.commit(cluster.start, KEYS, end)
    assert read(c, *KEYS) == [b"new"] * 4


@pytest.mark.parametrize("mode", ["async_commit", "one_pc"])
def test_a_living_one_commits_above_all_that_was_read(cluster, c, mode):
    ahead = c.run(c.pd.tso()) + 1_000
    assert c.run(c.kv.get(PRIMARY, ahead)) is None
    end = cluster.write([("put", PRIMARY, b"new")], mode=mode)
    assert end == ahead + 1
    assert c.run(c.kv.get(PRIMARY, ahead)) is None
    assert c.run(c.kv.get(PRIMARY, end)) == b"new"


def test_each_region_is_asked_once_for_all_of_its_keys(cluster, c):
    lock(cluster, *KEYS)
    expire(cluster)
    asked = []
    call = c.channels.call

    async def noting(address, method, request, timeout_seconds):
        if isinstance(request, kvrpcpb.CheckSecondaryLocksRequest):
            asked.append(list(request.keys))
        return await call(address, method, request, timeout_seconds)

    c.channels.call = noting
    cluster.merge(cluster.region_of(THIRD))
    assert read(c, PRIMARY) == [b"new"]
    assert asked == [[SECOND], [THIRD, FOURTH]]


def test_the_contexts_of_requests_name_the_region_its_epoch_and_the_peer(cluster, c):
    sent = []
    call = c.channels.call

    async def noting(address, method, request, timeout_seconds):
        sent.append(getattr(request, "context", None))
        return await call(address, method, request, timeout_seconds)

    c.channels.call = noting
    ts = c.run(c.pd.tso())
    sent.clear()
    assert c.run(c.kv.get(THIRD, ts)) is None
    region = cluster.keyspace.locate_raw(THIRD)
    context = sent[-1]
    epoch = context.region_epoch
    assert (context.region_id, epoch.conf_ver, epoch.version) == (region.id, region.conf_ver, region.version)
    assert context.peer == region.peer(region.leader)
