"""Tests of the change feed that case files can't express: sizes, quotas, clients' versions, options."""

from __future__ import annotations

import threading

import grpc
import pytest

from tidemill.codec.proto import cdcpb
from tidemill.codec.tidb.key import encode_bytes
from tidemill.testing.progress import STALL_SECONDS

from .script import told

TYPES = cdcpb.Event.LogType


def join(client, key=b"a", **fields):
    """Register the region of a raw key; its feed, and what its scan sent."""
    found = client.pd("GetRegion", region_key=encode_bytes(key))
    options = {name: fields.pop(name) for name in ("version", "multiplexing") if name in fields}
    feed = client.feed(found.leader.store_id, **options)
    feed.send(found.region, **fields)
    messages = [feed.read()]
    while not over(messages[-1]):
        messages.append(feed.read())
    return feed, messages


def over(message):
    return any(
        event.HasField("error") or any(row.type == TYPES.INITIALIZED for row in event.entries.entries)
        for event in message.events
    )


def lines(messages):
    return [line for message in messages for line in told(message)]


def test_a_scan_of_large_rows_comes_in_messages_of_at_most_six_mebibytes(make_client):
    client = make_client()
    client.cluster.write([("put", b"a%02d" % i, bytes(1_000_000)) for i in range(20)])
    _, messages = join(client)
    assert max(message.ByteSize() for message in messages) <= 6 << 20
    rows = [row for message in messages for event in message.events for row in event.entries.entries]
    assert [row.type for row in rows] == [TYPES.COMMITTED] * 20 + [TYPES.INITIALIZED]


def test_a_live_transaction_of_many_rows_comes_whole_in_such_messages_too(make_client):
    client = make_client()
    feed, _ = join(client)
    count = 3_000
    writer = threading.Thread(
        target=client.cluster.write, args=([("put", b"a%05d" % i, bytes(8_000)) for i in range(count)],)
    )
    writer.start()
    seen = 0
    while seen < 2 * count:
        message = feed.read()
        assert message.ByteSize() <= (6 << 20) + 1_024 * 8_100  # one step of a transaction is one event
        seen += sum(len(event.entries.entries) for event in message.events)
    writer.join()


def test_a_slow_reader_loses_the_regions_that_change_as_congested(make_client):
    client = make_client(quota_bytes=10_000, congestion_seconds=0.0)
    client.cluster.split(b"m")
    feed, _ = join(client, b"a", request_id=1)
    join(client, b"z", request_id=2)
    client.cluster.pause_streams()
    for _ in range(4):
        client.cluster.write([("put", b"a", bytes(5_000))])
    client.cluster.resume_streams()
    said = lines(feed.fence())
    assert said[-1] == "1/3 error congested"
    client.cluster.write([("put", b"z", b"1")])
    assert lines(feed.fence())[0].startswith("2/2 PREWRITE z")


def test_a_patient_writer_waits_for_a_full_stream_instead(make_client):
    client = make_client(quota_bytes=10_000, congestion_seconds=30.0)
    feed, _ = join(client)
    client.cluster.pause_streams()
    writes = [[("put", b"a%d" % i, bytes(5_000))] for i in range(4)]
    writer = threading.Thread(target=lambda: [client.cluster.write(each) for each in writes])
    writer.start()
    client.cluster.resume_streams()
    seen = []
    while len(seen) < 8:
        seen += lines([feed.read()])
    writer.join()
    assert not [line for line in seen if "error" in line]


def test_a_scan_waits_for_a_slow_reader(make_client):
    client = make_client(quota_bytes=10_000, scan_rows=1)
    client.cluster.write([("put", b"a%02d" % i, bytes(3_000)) for i in range(20)])
    found = client.pd("GetRegion", region_key=b"")
    feed, _ = join(client, request_id=1, checkpoint_ts=100)
    client.cluster.pause_streams()
    feed.send(found.region, request_id=2)
    store = client.cluster.stores[1]
    client.cluster.write([("put", b"z", b"1")])
    assert store.change_data.connections[0].queued_bytes < 20_000
    client.cluster.resume_streams()
    said = []
    while not said or "2/2 INITIALIZED" not in said:
        said += lines([feed.read()])
    assert len([line for line in said if line.startswith("2/2 COMMITTED")]) in (20, 21)


def test_an_old_client_gets_a_resolved_ts_for_each_region(make_client):
    client = make_client()
    client.cluster.split(b"m")
    feed, _ = join(client, b"a", version="4.0.7", multiplexing=False, request_id=1)
    join(client, b"z", version="4.0.7", multiplexing=False, request_id=2)
    ts = client.cluster.tick()
    assert sorted(lines(feed.fence())) == [f"1/3 resolved {ts}", f"2/2 resolved {ts}"]


def test_resolved_ts_of_one_request_id_come_together_and_a_held_region_by_itself(make_client):
    client = make_client()
    client.cluster.split(b"m")
    client.cluster.split(b"s")
    feed, _ = join(client, b"a", request_id=5)
    join(client, b"n", request_id=5)
    join(client, b"z", request_id=5)
    client.cluster.prewrite(client.cluster.tso(), [("put", b"n", b"1")])
    feed.read()
    ts = client.cluster.tick()
    assert sorted(lines(feed.fence())) == ["5/[2, 3] resolved " + str(ts), "5/[4] resolved 1"]


def test_regions_may_share_the_least_resolved_ts_of_a_group_as_in_tikv(make_client):
    client = make_client(coarse_resolved=True)
    keys = [b"k%02d" % number for number in range(12)]
    client.cluster.pave(keys)
    for region in client.cluster.keyspace:
        if region.leader != 1:
            client.cluster.transfer_leader(region.id, 1)
    for key in keys:
        feed, _ = join(client, key)
    start = client.cluster.tso()
    client.cluster.prewrite(start, [("put", keys[5], b"1")])
    assert lines(feed.fence())[0].endswith("put '1'")
    ts = client.cluster.tick()
    groups = [(set(m.resolved_ts.regions), m.resolved_ts.ts) for m in feed.fence() if m.resolved_ts.regions]
    assert [(len(group), at) for group, at in groups] == [(8, start), (4, ts)]
    assert client.cluster.region_of(keys[5]) in groups[0][0]


def test_a_checkpoint_below_the_safe_point_gets_what_is_left(make_client):
    client = make_client()
    for value in (b"1", b"2", b"3"):
        client.cluster.write([("put", b"a", value)])
    client.cluster.gc(5)
    _, messages = join(client, extra_op=1)
    client.cluster.write([("delete", b"a", b"")])
    client.cluster.gc()
    said = lines(join(client, request_id=1)[1])
    assert [line for line in said if line.startswith("1/2")] == ["1/2 INITIALIZED"]
    assert lines(messages) == [
        "0/2 COMMITTED a start=5 commit=6 put '3' old '2'",
        "0/2 COMMITTED a start=3 commit=4 put '2'",
        "0/2 INITIALIZED",
    ]


def test_a_feature_that_the_store_lacks_is_unimplemented(make_client):
    client = make_client()
    method = "/cdcpb.ChangeData/EventFeedV2"
    call = client.channel(client.address(1)).stream_stream(method)
    with pytest.raises(grpc.RpcError) as raised:
        next(call(iter([]), metadata=[("features", "stream-multiplexing,telepathy")], timeout=STALL_SECONDS))
    assert (raised.value.code().name, raised.value.details()) == ("UNIMPLEMENTED", "telepathy")


@pytest.mark.parametrize(
    ("version", "cluster_id", "answer"),
    [
        ("5.3.0", 5, "error cluster_id_mismatch"),
        ("v5.3.0-alpha", 5, "error cluster_id_mismatch"),
        ("5.2.9", 5, "INITIALIZED"),
        ("5.3.0", None, "INITIALIZED"),
    ],
)
def test_newer_clients_must_know_the_clusters_id(make_client, version, cluster_id, answer):
    client = make_client()
    header = {"cluster_id": cluster_id or client.cluster.options.cluster_id, "ticdc_version": version}
    _, messages = join(client, header=header)
    assert lines(messages) == [f"0/2 {answer}"]


def test_a_client_below_the_required_version_is_incompatible_and_so_is_the_raw_api(make_client):
    client = make_client(required_version="6.2.0")
    _, messages = join(client, version="6.1.9")
    assert messages[0].events[0].error.compatibility.required_version == "6.2.0"
    client.close()
    other = make_client()
    _, messages = join(other, kv_api=1)
    assert messages[0].events[0].error.compatibility.required_version == "6.2.0"


def test_too_many_registrations_waiting_for_a_scan_are_answered_busy(make_client):
    client = make_client(scans_waiting=1)
    client.cluster.hold_scans()
    found = client.pd("GetRegion", region_key=b"")
    feed = client.feed(1)
    feed.send(found.region, request_id=1)
    feed.send(found.region, request_id=2)
    assert lines(feed.fence())[0] == "2/2 error server_is_busy"
    client.cluster.free_scans()
    assert lines([feed.read()]) == ["1/2 INITIALIZED"]


def test_the_whole_regions_changes_come_unless_the_store_filters(make_client):
    for filters, keys in ((False, ["a", "k"]), (True, ["k"])):
        client = make_client(filter_span=filters)
        client.cluster.write([("put", b"a", b"1"), ("put", b"k", b"1")])
        span = {"start_key": encode_bytes(b"h"), "end_key": encode_bytes(b"m")}
        feed, messages = join(client, **span)
        assert [line.split()[2] for line in lines(messages)[:-1]] == keys
        client.cluster.write([("put", b"a", b"2"), ("put", b"k", b"2")])
        said = [line.split()[2] for line in lines(feed.fence())]
        assert said == keys * 2


def test_with_a_seed_the_rows_of_an_event_come_in_any_order_the_same_each_time(make_client):
    orders = []
    for seed in (5, 5, None):
        client = make_client(seed=seed)
        feed, _ = join(client)
        client.cluster.write([("put", b"%02d" % number, b"v") for number in range(20)])
        orders.append([line.split()[2] for line in lines(feed.fence())])
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0][:20]) == sorted(orders[0][20:]) == orders[2][:20]


def test_a_heartbeat_is_a_prewrite_without_its_value(make_client):
    client = make_client()
    feed, _ = join(client)
    client.cluster.prewrite(1, [("put", b"a", b"1")])
    client.cluster.heartbeat(b"a", ttl_ms=9_000)
    assert lines(feed.fence()) == ["0/2 PREWRITE a start=1 put '1'", "0/2 PREWRITE a start=1 put ''"]
    assert client.cluster.keyspace.locate_raw(b"a").shard.locks[b"a"].attempt.ttl_ms == 9_000


def test_pipelined_transactions_prewrite_a_key_again_in_a_higher_generation(make_client):
    client = make_client()
    feed, _ = join(client)
    client.cluster.prewrite(1, [("put", b"a", b"1")], generation=1)
    client.cluster.prewrite(1, [("put", b"a", b"2")], generation=2)
    client.cluster.prewrite(1, [("put", b"a", b"old")], generation=1)
    client.cluster.commit(1, [b"a"], 5)
    assert lines(feed.fence()) == [
        "0/2 PREWRITE a start=1 put '1' generation=1",
        "0/2 PREWRITE a start=1 put '2' generation=2",
        "0/2 COMMIT a start=1 commit=5 put '2'",
    ]


def test_a_commit_below_what_was_resolved_is_refused(make_client):
    client = make_client()
    feed, _ = join(client)
    ts = client.cluster.tick()
    client.cluster.prewrite(ts - 1, [("put", b"a", b"1")])
    with pytest.raises(Exception, match="commit_ts_expired"):
        client.cluster.commit(ts - 1, [b"a"], ts)
    client.cluster.tick()
    assert lines(feed.fence())[-1] == f"0/[2] resolved {ts}"
