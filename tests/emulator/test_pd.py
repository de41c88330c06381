"""PD over real gRPC."""

from __future__ import annotations

from itertools import pairwise

import grpc
import pytest

from tidemill.codec.proto import metapb, pdpb
from tidemill.codec.tidb.key import encode_bytes

FOREVER = (1 << 63) - 1


@pytest.fixture
def client(make_client):
    return make_client()


def refusal(call, *arguments, **fields):
    with pytest.raises(grpc.RpcError) as raised:
        call(*arguments, **fields)
    return raised.value.code().name, raised.value.details()


def ids(regions):
    return [region.region.id for region in regions]


def test_any_member_names_the_cluster_the_members_and_the_leader(make_client):
    client = make_client(pd_members=3)
    addresses = client.cluster.pd_address.split(",")
    for member in range(3):
        answer = client.pd("GetMembers", member=member, header={})
        assert answer.header.cluster_id == client.cluster.options.cluster_id
        assert [m.client_urls[0] for m in answer.members] == [f"http://{a}" for a in addresses]
        assert answer.leader.name == "pd-0"


def test_only_the_leader_answers_more_than_that_and_another_can_become_it(make_client):
    client = make_client(pd_members=2)
    key = {"region_key": b""}
    assert refusal(client.pd, "GetRegion", member=1, **key) == ("UNAVAILABLE", "not leader")
    assert refusal(client.tso, member=1)[0] == "UNKNOWN"
    assert client.cluster.pd_leader() == 1
    assert client.pd("GetMembers").leader.name == "pd-1"
    assert refusal(client.pd, "GetRegion", **key) == ("UNAVAILABLE", "not leader")
    assert client.pd("GetRegion", member=1, **key).region.id == 2
    before = client.cluster.tso()
    assert client.tso(member=1).timestamp.logical == before + 1


def test_another_clusters_id_is_refused(client):
    mine = client.cluster.options.cluster_id
    code, said = refusal(client.pd, "GetRegion", header={"cluster_id": 5}, region_key=b"")
    assert (code, said) == ("FAILED_PRECONDITION", f"mismatch cluster id, need {mine} but got 5")
    client.header = {"cluster_id": 5}
    assert refusal(client.tso)[0] == "FAILED_PRECONDITION"


def test_timestamps_are_given_once_many_at_a_time(client):
    first = client.tso(10)
    second = client.tso()
    assert (first.count, first.timestamp.logical) == (10, 10)
    assert (second.timestamp.physical, second.timestamp.logical) == (0, 11)
    assert refusal(client.tso, 1 << 18)[0] == "UNKNOWN"
    said = "generate timestamp failed, tso count should be positive"
    assert refusal(client.tso, 0) == ("UNKNOWN", said)
    assert [client.tso((1 << 18) - 1).timestamp.physical for _ in range(2)] == [1, 2]


def test_regions_are_found_by_key_by_id_and_by_range(client):
    for key in (b"m", b"f", b"t"):
        client.cluster.split(key)
    scanned = client.pd("ScanRegions", limit=10)
    assert [leader.store_id for leader in scanned.leaders] == [1, 1, 1, 1]
    assert [region.end_key for region in scanned.region_metas] == [
        *(encode_bytes(key) for key in (b"f", b"m", b"t")),
        b"",
    ]
    assert all(a.region.end_key == b.region.start_key for a, b in pairwise(scanned.regions))
    first, second, third, last = ids(scanned.regions)
    find = {"region_key": encode_bytes(b"m")}
    assert client.pd("GetRegion", **find).region.id == third
    assert client.pd("GetPrevRegion", **find).region.id == second
    assert not client.pd("GetPrevRegion", region_key=b"").HasField("region")
    assert client.pd("GetRegionByID", region_id=last).region.id == last
    assert not client.pd("GetRegionByID", region_id=99).HasField("region")
    middle = {"start_key": encode_bytes(b"g"), "end_key": encode_bytes(b"n")}
    assert ids(client.pd("ScanRegions", **middle).regions) == [second, third]
    assert ids(client.pd("ScanRegions", **middle, limit=1).regions) == [second]
    ranges = [{"start_key": b"", "end_key": encode_bytes(b"a")}, middle]
    assert ids(client.pd("BatchScanRegions", ranges=ranges).regions) == [first, second, third]
    assert ids(client.pd("BatchScanRegions", ranges=ranges, limit=2).regions) == [first, second]


def test_ranges_that_overlap_or_are_reversed_are_refused(client):
    client.cluster.split(b"m")

    def said(*ranges):
        spans = [{"start_key": start, "end_key": end} for start, end in ranges]
        answer = client.pd("BatchScanRegions", ranges=spans)
        return answer.header.error.type, answer.header.error.message, len(answer.regions)

    unknown = pdpb.ErrorType.UNKNOWN
    assert said((b"a", b"c"), (b"c", b"d"), (b"d", b"")) == (pdpb.ErrorType.OK, "", 2)
    assert said((b"a", b"c"), (b"b", b"d")) == (unknown, "invalid key range, ranges overlapped", 0)
    assert said((b"b", b"c"), (b"a", b"b")) == (unknown, "invalid key range, ranges overlapped", 0)
    assert said((b"c", b"a")) == (unknown, "invalid key range, start key > end key", 0)


def test_members_say_what_they_run(make_client):
    members = make_client(pd_members=2, version="7.5.1").pd("GetMembers").members
    assert [member.binary_version for member in members] == ["v7.5.1", "v7.5.1"]


def test_a_removed_store_is_a_tombstone_and_leads_nothing(client):
    serving, removed = metapb.NodeState.Serving, metapb.NodeState.Removed
    assert {store.node_state for store in client.pd("GetAllStores").stores} == {serving}
    client.cluster.remove_store(1)
    store = client.pd("GetStore", store_id=1).store
    assert (store.state, store.node_state) == (metapb.StoreState.Tombstone, removed)
    stores = client.pd("GetAllStores", exclude_tombstone_stores=True).stores
    assert [store.id for store in stores] == [2, 3]
    assert len(client.pd("GetAllStores").stores) == 3
    assert client.pd("GetRegion", region_key=b"").leader.store_id != 1


def test_stores_are_named_with_address_and_version(client):
    stores = client.pd("GetAllStores").stores
    assert [store.id for store in stores] == [1, 2, 3]
    assert {store.version for store in stores} == {"8.1.0"}
    assert client.pd("GetStore", store_id=2).store == stores[1]
    error = client.pd("GetStore", store_id=9).header.error
    assert (error.type, error.message) == (pdpb.ErrorType.UNKNOWN, "invalid store ID 9, not found")
    assert client.pd("GetClusterConfig").cluster.max_peer_count == 3
    assert client.pd("IsBootstrapped").bootstrapped


def test_services_hold_the_safe_point_back_until_their_time_is_over(client):
    def update(service, ttl, safe_point):
        answer = client.pd("UpdateServiceGCSafePoint", service_id=service, TTL=ttl, safe_point=safe_point)
        return answer.service_id, answer.min_safe_point, answer.header.error.message

    assert update(b"gc_worker", FOREVER, 100) == (b"gc_worker", 100, "")
    assert update(b"cdc", 60, 150) == (b"gc_worker", 100, "")
    assert update(b"gc_worker", FOREVER, 200) == (b"cdc", 150, "")
    assert update(b"late", 60, 120) == (b"cdc", 150, "")  # below the least: not taken
    assert client.cluster.gc(180) == 150
    assert client.pd("GetGCSafePoint").safe_point == 150
    client.cluster.jump_clock(61)
    assert update(b"other", 60, 500) == (b"gc_worker", 200, "")
    assert update(b"other", 0, 0) == (b"gc_worker", 200, "")
    assert client.cluster.gc(180) == 180


def test_a_service_safe_point_that_pd_cannot_keep_is_refused_by_a_status(client):
    def refused(service, ttl, safe_point):
        fields = {"service_id": service, "TTL": ttl, "safe_point": safe_point}
        return refusal(client.pd, "UpdateServiceGCSafePoint", **fields)

    empty = ("UNKNOWN", "service id of service safepoint cannot be empty")
    assert refused(b"", 60, 100) == empty
    worker = ("UNKNOWN", "TTL of gc_worker's service safe point must be infinity")
    assert refused(b"gc_worker", 5, 300) == worker
    removal = ("UNKNOWN", "cannot remove service safe point of gc_worker")
    assert refused(b"gc_worker", 0, 0) == removal
    assert list(client.cluster.pd.safe_points.holds) == [b"gc_worker"]


def test_pd_can_be_away_and_come_back_on_its_port(client):
    address = client.cluster.pd_address
    client.cluster.pd_down()
    assert refusal(client.pd, "GetMembers")[0] == "UNAVAILABLE"
    client.cluster.pd_up()
    assert client.cluster.pd_address == address
    client._channels.pop(address).close()  # a channel that failed waits before it tries again
    assert client.pd("GetMembers").leader.name == "pd-0"
