"""Reads at a timestamp over an emulated cluster: regions that move, stores that go, locks in the way."""

from __future__ import annotations

import pytest

from tidemill.codec.proto import kvrpcpb
from tidemill.emulator.cluster import Cluster
from tidemill.errors import Retryable, SourceError
from tidemill.puller.tikv.kv.transactions import PrimaryMismatch

from .client import client

KEYS = [b"k%03d" % n for n in range(100)]


@pytest.fixture
def cluster():
    with Cluster(stores=3) as cluster:
        yield cluster


@pytest.fixture
def c(cluster):
    with client(cluster.pd_address, scan_page=7) as c:
        yield c


@pytest.fixture
def rows(cluster):
    """A hundred rows in five regions; their commit ts."""
    ts = cluster.write([("put", key, b"v" + key) for key in KEYS])
    for key in (b"k020", b"k033", b"k070", b"k071"):
        cluster.split(key)
    return ts


def scan(c, start, end, ts):
    async def collect():
        return [pair async for pair in c.kv.scan(start, end, ts)]

    return c.run(collect())


def locks(c, start=b"", end=b"", max_ts=1 << 63, limit=1024):
    return c.run(c.kv.scan_locks(start, end, max_ts, limit))


def noted(c):
    """A list that gets a copy of each request from now on."""
    sent, call = [], c.channels.call

    async def noting(address, method, request, timeout_seconds):
        sent.append(type(request).FromString(request.SerializeToString()))
        return await call(address, method, request, timeout_seconds)

    c.channels.call = noting
    return sent


def test_rows_that_are_too_large_for_one_answer_come_in_several(cluster):
    values = [bytes([n]) * 100_000 for n in range(60)]
    ts = cluster.write([("put", key, value) for key, value in zip(KEYS, values, strict=False)])
    with client(cluster.pd_address, max_receive_bytes=1 << 20) as c:
        assert scan(c, b"k", b"l", ts) == list(zip(KEYS, values, strict=False))


def test_a_row_that_is_too_large_for_any_answer_is_refused(cluster):
    ts = cluster.write([("put", b"k1", b"small"), ("put", b"k2", bytes(2 << 20))])
    with (
        client(cluster.pd_address, max_receive_bytes=1 << 20) as c,
        pytest.raises(SourceError, match=r"KvScan: an answer is too large for max_receive_bytes"),
    ):
        scan(c, b"k", b"l", ts)


# --- regions


def test_a_value_is_read_as_of_its_timestamp(cluster, c):
    first = cluster.write([("put", b"k", b"1")])
    second = cluster.write([("put", b"k", b"2")])
    third = cluster.write([("delete", b"k", b"")])
    seen = [c.run(c.kv.get(b"k", ts)) for ts in (first - 1, first, second, third)]
    assert seen == [None, b"1", b"2", None]


def test_a_scan_reads_pages_over_all_regions_in_key_order(c, rows):
    assert scan(c, b"", b"", rows) == [(key, b"v" + key) for key in KEYS]
    assert [key for key, _ in scan(c, b"k015", b"k072", rows)] == KEYS[15:72]
    assert scan(c, b"k020", b"k020", rows) == []
    assert scan(c, b"x", b"", rows) == []
    assert scan(c, b"", b"", rows - 1) == []


def test_a_region_is_asked_for_nothing_beyond_its_end(c, rows):
    sent = noted(c)
    scan(c, b"k030", b"k071", rows)
    locks(c, b"k030", b"k071")
    for kind in (kvrpcpb.ScanRequest, kvrpcpb.ScanLockRequest):
        requests = [request for request in sent if isinstance(request, kind)]
        ends = dict.fromkeys(request.end_key for request in requests)
        assert list(ends) == [b"k033", b"k070", b"k071"]


@pytest.mark.parametrize("page", [1, 2, 13, 20, 1000])
def test_a_scan_is_the_same_in_pages_of_any_size(cluster, rows, page):
    with client(cluster.pd_address, scan_page=page) as c:
        assert [key for key, _ in scan(c, b"", b"", rows)] == KEYS


def test_small_answers_are_followed_by_larger_requests_and_large_ones_are_not(cluster, c, rows):
    async def pages(*growth):
        return [keys async for keys, _ in c.kv.pages(b"k071", b"", rows, *growth)]

    assert [len(keys) for keys in c.run(pages())] == [7, 7, 7, 7, 1]
    assert [len(keys) for keys in c.run(pages(2))] == [7, 14, 8]
    ts = cluster.write([("put", key, bytes(50_000)) for key in KEYS[:60]])
    with client(cluster.pd_address, scan_page=7) as c:

        async def large():
            return [keys async for keys, _ in c.kv.pages(b"k034", b"k060", ts, 4)]

        assert [len(keys) for keys in c.run(large())] == [7, 7, 7, 5]


def test_a_scan_goes_on_while_regions_split_merge_and_move(cluster, c, rows):
    async def collect():
        seen = []
        async for key, _ in c.kv.scan(b"", b"", rows):
            seen.append(key)
            moves.pop(len(seen), lambda: None)()
        return seen

    moves = {
        3: lambda: cluster.split(b"k010"),
        12: lambda: cluster.transfer_leader(cluster.region_of(b"k015")),
        25: lambda: cluster.merge(cluster.region_of(b"k030")),
        50: lambda: cluster.transfer_leader(cluster.region_of(b"k060")),
        80: lambda: cluster.split(b"k090"),
    }
    assert c.run(collect()) == KEYS
    assert moves == {}


@pytest.mark.parametrize(
    "error",
    [
        "not_leader",
        "epoch_not_match",
        "region_not_found",
        "key_not_in_region",
        "server_is_busy",
        "store_not_match",
        "mismatch_peer_id",
        "stale_command",
    ],
)
def test_a_region_error_is_followed(cluster, c, rows, error):
    c.run(c.kv.get(b"k050", rows))
    cluster.fail_next(cluster.region_of(b"k050"), error, times=3)
    assert c.run(c.kv.get(b"k050", rows)) == b"vk050"
    assert [key for key, _ in scan(c, b"", b"", rows)] == KEYS


def test_every_request_names_its_cluster_and_that_no_tidb_sends_it(cluster, c, rows):
    sent = noted(c)
    cluster.leave_lock(b"k050", b"never", ttl_ms=0)
    assert c.run(c.kv.get(b"k050", cluster.tso())) == b"vk050"
    locks(c)
    scan(c, b"", b"", rows)
    contexts = [request.context for request in sent if hasattr(request, "context")]
    kinds = {type(request).__name__ for request in sent if hasattr(request, "context")}
    assert kinds > {"GetRequest", "ScanRequest", "CheckTxnStatusRequest", "ResolveLockRequest"}
    assert {context.cluster_id for context in contexts} == {cluster.options.cluster_id}
    assert all(context.HasField("request_origin") for context in contexts)
    assert {context.request_origin for context in contexts} == {0}


def test_a_peer_that_left_its_store_and_came_back_is_found_under_its_new_id(cluster, c, rows):
    region = cluster.region_of(b"k050")
    assert c.run(c.kv.get(b"k050", rows)) == b"vk050"
    leader = c.run(c.cache.rpc_context(region)).peer
    cluster.transfer_leader(region)
    cluster.remove_peer(region, leader.store_id)
    cluster.add_peer(region, leader.store_id)
    cluster.transfer_leader(region, leader.store_id)
    sent = noted(c)
    assert c.run(c.kv.get(b"k050", rows)) == b"vk050"
    reads = [request.context.peer for request in sent if isinstance(request, kvrpcpb.GetRequest)]
    assert [peer.id == leader.id for peer in reads] == [True, False]
    assert {peer.store_id for peer in reads} == {leader.store_id}


def test_an_address_that_belongs_to_another_cluster_by_now_is_asked_of_pd_again(cluster, rows):
    with (
        Cluster(stores=1, cluster_id=9) as other,
        client(cluster.pd_address, store_retry_seconds=60.0) as c,
    ):
        leader = c.run(c.cache.rpc_context(c.run(c.cache.locate(b"")))).store_id
        here = cluster.pd.stores[leader].address
        cluster.pd.stores[leader].address = other.pd.stores[1].address
        c.cache.forget_store(leader)
        c.run(c.cache.store(leader))
        cluster.pd.stores[leader].address = here
        assert c.run(c.kv.get(b"k050", rows)) == b"vk050"


def test_a_store_of_another_cluster_is_told_in_its_words(cluster, rows):
    with (
        Cluster(stores=1, cluster_id=9) as other,
        client(cluster.pd_address, store_retry_seconds=0.1) as c,
    ):
        for store in cluster.pd.stores.values():
            store.address = other.pd.stores[1].address
        with pytest.raises(Retryable, match=r"KvGet: INVALID_ARGUMENT: the cluster id of the request"):
            c.run(c.kv.get(b"k050", rows))


def test_a_region_error_that_stays_is_told_in_the_stores_words(cluster, rows):
    cluster.fail_next(cluster.region_of(b"k050"), "server_is_busy", times=1000)
    with (
        client(cluster.pd_address, store_retry_seconds=0.1) as c,
        pytest.raises(Retryable, match=r"KvGet: 127\.0\.0\.1:\d+: server_is_busy"),
    ):
        c.run(c.kv.get(b"k050", rows))


def test_a_store_that_goes_down_is_left_for_the_next_leader(cluster, c, rows):
    region = cluster.region_of(b"k050")
    leader = c.run(c.cache.rpc_context(c.run(c.cache.locate(b"")))).store_id
    assert c.run(c.kv.get(b"k050", rows)) == b"vk050"
    cluster.store_down(leader)
    assert c.run(c.kv.get(b"k050", rows)) == b"vk050"
    assert c.run(c.cache.rpc_context(region)).store_id != leader
    cluster.store_up(leader)
    assert [key for key, _ in scan(c, b"", b"", rows)] == KEYS


def test_a_store_that_is_removed_is_left_for_the_others(cluster, c, rows):
    leader = c.run(c.cache.rpc_context(c.run(c.cache.locate(b"")))).store_id
    cluster.remove_store(leader)
    assert [key for key, _ in scan(c, b"", b"", rows)] == KEYS
    assert c.run(c.pd.store(leader)).tombstone
    assert leader not in [store.id for store in c.run(c.pd.stores())]


def test_with_no_store_left_the_error_names_the_call(rows, cluster):
    with client(cluster.pd_address, store_retry_seconds=0.2) as c:
        for store in (1, 2, 3):
            cluster.store_down(store)
        with pytest.raises(Retryable, match="KvGet: "):
            c.run(c.kv.get(b"k050", rows))


# --- locks


def test_a_lock_whose_writer_died_is_rolled_back_by_the_read_that_meets_it(cluster, c, rows):
    cluster.leave_lock(b"k050", b"never", ttl_ms=0)
    later = cluster.tso()
    assert c.run(c.kv.get(b"k050", later)) == b"vk050"
    assert locks(c) == []


def test_a_scan_gets_past_locks_in_its_way(cluster, c, rows):
    for key in (b"k000", b"k020", b"k033", b"k034", b"k099", b"new"):
        cluster.leave_lock(key, b"never", ttl_ms=0)
    assert scan(c, b"", b"", cluster.tso()) == [(key, b"v" + key) for key in KEYS]


def test_a_transaction_whose_primary_is_committed_is_committed_by_the_read_that_meets_its_rest(
    cluster, c, rows
):
    start = cluster.tso()
    cluster.prewrite(start, [("put", b"k010", b"1"), ("put", b"k090", b"2")], primary=b"k010")
    cluster.commit(start, [b"k010"])
    assert c.run(c.kv.get(b"k090", cluster.tso())) == b"2"
    assert locks(c) == []


def test_a_living_lock_that_can_be_pushed_is_read_past(cluster, c, rows):
    start = cluster.tso()
    cluster.prewrite(start, [("put", b"k010", b"1")], ttl_ms=600_000, min_commit_ts=start + 1)
    sent = noted(c)
    assert c.run(c.kv.get(b"k010", cluster.tso())) == b"vk010"
    reads = [request for request in sent if isinstance(request, kvrpcpb.GetRequest)]
    assert [list(request.context.resolved_locks) for request in reads] == [[], [start]]
    assert dict(scan(c, b"k000", b"k020", cluster.tso()))[b"k010"] == b"vk010"
    assert [lock.lock_version for lock in locks(c)] == [start]


def test_a_living_lock_that_cannot_be_pushed_is_waited_for_not_for_ever(cluster, rows):
    start = cluster.tso()
    cluster.prewrite(start, [("put", b"k010", b"1")], ttl_ms=600_000)
    with (
        client(cluster.pd_address, store_retry_seconds=0.1) as c,
        pytest.raises(Retryable, match=rf"waits for the transaction {start}, whose lock on 6b303130"),
    ):
        c.run(c.kv.get(b"k010", cluster.tso()))


def test_a_wait_ends_when_the_writer_commits(cluster, c, rows):
    start = cluster.tso()
    cluster.prewrite(start, [("put", b"k010", b"1")], ttl_ms=600_000)
    seen = []
    check = c.kv.check_txn_status

    async def commit_at_the_third(*arguments, **options):
        seen.append(arguments)
        if len(seen) == 3:
            cluster.commit(start, [b"k010"])
        return await check(*arguments, **options)

    c.kv.check_txn_status = commit_at_the_third
    assert c.run(c.kv.get(b"k010", cluster.tso())) == b"vk010"
    assert len(seen) == 3


def test_a_lock_whose_primary_was_never_written_is_waited_for_then_rolled_back(cluster, c, rows):
    start = cluster.leave_lock(b"k010", b"never", ttl_ms=50, primary=b"k090")
    assert c.run(c.kv.get(b"k010", cluster.tso())) == b"vk010"
    assert start not in [lock.lock_version for lock in locks(c)]


def test_locks_are_found_over_all_regions_up_to_a_timestamp_and_a_number(cluster, c, rows):
    keys = [b"k001", b"k025", b"k098"]
    starts = [cluster.leave_lock(key, b"x", ttl_ms=600_000, primary=b"z" + key) for key in keys]
    found = [(lock.key, lock.lock_version, lock.primary_lock) for lock in locks(c, end=b"z")]
    assert found == [(key, start, b"z" + key) for key, start in zip(keys, starts, strict=True)]
    assert [lock.key for lock in locks(c, end=b"z", max_ts=starts[1])] == [b"k001", b"k025"]
    assert [lock.key for lock in locks(c, limit=2)] == [b"k001", b"k025"]
    assert [lock.key for lock in locks(c, start=b"k002", end=b"k098")] == [b"k025"]


def test_a_transactions_locks_are_resolved_region_by_region_or_key_by_key(cluster, c, rows):
    start = cluster.tso()
    cluster.prewrite(start, [("put", key, b"new") for key in (b"k001", b"k002", b"k025")], ttl_ms=600_000)
    c.run(c.kv.resolve_lock(b"k001", start, 0, [b"k001"]))
    assert [lock.key for lock in locks(c)] == [b"k002", b"k025"]
    c.run(c.kv.resolve_lock(b"k001", start, cluster.tso()))
    assert [lock.key for lock in locks(c)] == [b"k025"]
    c.run(c.kv.resolve_locks(b"k025", {start: 0}))
    assert locks(c) == []
    now = cluster.tso()
    assert [c.run(c.kv.get(key, now)) for key in (b"k001", b"k002", b"k025")] == [b"vk001", b"new", b"vk025"]


def test_the_status_of_a_transaction(cluster, c, rows):
    alive = cluster.tso()
    cluster.prewrite(alive, [("put", b"k001", b"x"), ("put", b"k003", b"x")], ttl_ms=600_000)
    status = c.run(c.kv.check_txn_status(b"k001", alive, current_ts=cluster.tso()))
    assert not status.ended
    assert (status.lock.key, status.lock.lock_version, status.lock.lock_ttl) == (b"k001", alive, 600_000)
    missing = cluster.tso()
    assert c.run(c.kv.check_txn_status(b"k002", missing, current_ts=cluster.tso())) is None
    status = c.run(
        c.kv.check_txn_status(b"k002", missing, current_ts=cluster.tso(), rollback_if_not_exist=True)
    )
    assert (status.ended, status.commit_ts) == (True, 0)


def test_only_a_primary_lock_tells_what_became_of_its_transaction(cluster, c, rows):
    start = cluster.tso()
    cluster.prewrite(start, [("put", b"k001", b"x"), ("put", b"k002", b"x")], primary=b"k003", ttl_ms=0)
    cluster.prewrite(start, [("put", b"k004", b"x")], primary=b"k002", ttl_ms=0)
    said = f"primary_mismatch: a lock of transaction {start} names 6b303032 as its primary, but .* 6b303033"
    with pytest.raises(PrimaryMismatch, match=said):
        c.run(c.kv.get(b"k004", cluster.tso()))
    assert [lock.key for lock in locks(c)] == [b"k001", b"k002", b"k004"]
