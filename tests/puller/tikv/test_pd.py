"""The placement driver: its members, its answers and its refusals."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from tidemill.codec.proto import PD, metapb, pdpb
from tidemill.emulator.cluster import Cluster
from tidemill.errors import Retryable, SourceError
from tidemill.puller.tikv.span import UPPER_BOUND

from .client import client
from .scripted import Abort, Scripted, ScriptedPd, served, silent_address


@pytest.fixture
def cluster():
    with Cluster(stores=3) as cluster:
        yield cluster


def test_regions_stores_and_the_cluster_are_found_through_any_member(cluster):
    with client(cluster.pd_address) as c:
        assert c.pd.cluster_id == cluster.options.cluster_id
        (region,) = c.run(c.pd.scan_regions(b"", b"", 20))
        assert (region.start, region.end) == (b"", UPPER_BOUND)
        assert [peer.store_id for peer in region.peers] == [1, 2, 3]
        assert region.leader == region.peers[0]
        assert c.run(c.pd.region_by_key(b"anything")) == region
        assert c.run(c.pd.region_by_id(region.id)) == region
        assert c.run(c.pd.region_by_id(999)) is None
        store = c.run(c.pd.store(2))
        assert (store.id, store.version, store.tombstone) == (2, "8.1.0", False)
        assert store in c.run(c.pd.stores())
        assert c.run(c.pd.store(77)) is None


def test_every_request_names_the_cluster():
    pd = ScriptedPd(cluster_id=42)
    pd.on(PD["GetRegion"], lambda _: pdpb.GetRegionResponse(header=pd.header()))
    with served(pd), client(pd.address) as c:
        c.run(c.pd.region_by_key(b"k"))
        c.run(c.pd.region_by_key(b"k"))
    members, *regions = pd.requests
    assert members.header.cluster_id == 0
    assert [request.header.cluster_id for request in regions] == [42, 42]


def test_another_cluster_than_the_pinned_one_is_refused_naming_both(cluster):
    with (
        pytest.raises(
            SourceError, match=r"belongs to cluster 7000000000000000001, not 5: check .*cluster_id"
        ),
        client(cluster.pd_address, cluster_id=5),
    ):
        pass


def test_a_member_that_belongs_to_another_cluster_now_is_refused_naming_both():
    pd = ScriptedPd(cluster_id=7)
    pd.on(PD["GetGCSafePoint"], lambda _: pdpb.GetGCSafePointResponse(header=pd.header(), safe_point=3))
    with served(pd), client(pd.address) as c:
        assert c.run(c.pd.gc_safe_point()) == 3
        pd.cluster_id = 8
        with pytest.raises(SourceError, match="belongs to cluster 8, not 7"):
            c.run(c.pd.gc_safe_point())


def test_a_refusal_for_the_wrong_cluster_id_finds_out_which_it_is():
    pd = ScriptedPd(cluster_id=7)

    def refuse(request):
        pd.cluster_id = 8
        raise Abort(grpc.StatusCode.FAILED_PRECONDITION, "mismatch cluster id, need 8 but got 7")

    pd.on(PD["GetGCSafePoint"], refuse)
    with served(pd), client(pd.address) as c, pytest.raises(SourceError, match="belongs to cluster 8, not 7"):
        c.run(c.pd.gc_safe_point())


def test_the_calls_follow_the_leader():
    with Cluster(stores=1, pd_members=3) as cluster, client(cluster.pd_address) as c:
        before = c.run(c.pd.tso())
        first = c.pd.members.leader
        cluster.pd_leader(2)
        assert c.run(c.pd.region_by_key(b"k")) is not None
        assert c.pd.members.leader == cluster.pd_address.split(",")[2] != first
        assert c.run(c.pd.tso()) > before


def test_a_member_that_is_down_is_no_matter_while_another_leads():
    with Cluster(stores=1, pd_members=3) as cluster:
        gone = silent_address()
        last = cluster.pd_address.split(",")[2]
        with client(f"{gone},{last}") as c:
            assert c.pd.members.leader == cluster.pd_address.split(",")[0]
            assert set(c.pd.members.addresses) == {gone, *cluster.pd_address.split(",")}


def test_a_leader_that_dies_is_replaced_by_the_one_that_the_others_elect():
    first, second = ScriptedPd(), ScriptedPd()
    first.members = second.members = lambda: [first, second]
    first.leader = second.leader = lambda: first
    second.on(
        PD["GetGCSafePoint"], lambda _: pdpb.GetGCSafePointResponse(header=second.header(), safe_point=9)
    )
    with served(second), served(first), client(first.address) as c:
        first.on(PD["GetGCSafePoint"], lambda _: die())

        def die():
            second.leader = first.leader = lambda: second
            raise Abort(grpc.StatusCode.UNAVAILABLE, "not leader")

        assert c.run(c.pd.gc_safe_point()) == 9


def test_without_any_member_the_error_names_them_all_and_may_pass():
    gone, also_gone = silent_address(), silent_address()
    with (
        pytest.raises(
            Retryable, match=rf"no answer from PD \({gone}, {also_gone}\): .*GetMembers: UNAVAILABLE"
        ),
        client(f"{gone},{also_gone}", pd_retry_seconds=0.0),
    ):
        pass


def test_a_cluster_without_a_leader_is_waited_for_until_it_has_one():
    pd = ScriptedPd()
    asked = []

    def leader():
        asked.append(1)
        return pd if len(asked) > 3 else None

    pd.leader = leader
    with served(pd), client(pd.address) as c:
        assert c.pd.members.leader == pd.address
    assert len(asked) == 4


def test_callers_at_the_same_time_share_the_search_for_the_leader():
    pd = ScriptedPd()
    pd.on(PD["GetGCSafePoint"], lambda _: pdpb.GetGCSafePointResponse(header=pd.header()))

    async def many(c):
        await asyncio.gather(*(c.pd.gc_safe_point() for _ in range(50)))

    with served(pd), client(pd.address, connected=False) as c:
        c.run(many(c))
    assert sum(isinstance(request, pdpb.GetMembersRequest) for request in pd.requests) == 1


def test_a_caller_that_gives_up_does_not_end_the_search_of_the_others():
    pd = ScriptedPd()
    release = asyncio.Event()
    answer = pd.answers[PD["GetMembers"].path]

    async def slow(request):
        await release.wait()
        return answer(request)

    pd.on(PD["GetMembers"], slow)

    async def race(c):
        impatient = asyncio.create_task(c.pd.connect())
        patient = asyncio.create_task(c.pd.connect())
        while not pd.requests:
            await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.wait([impatient])
        servers.call_soon_threadsafe(release.set)
        await patient

    with served(pd) as servers, client(pd.address, connected=False) as c:
        c.run(race(c))
        assert c.pd.members.leader == pd.address
    assert len(pd.requests) == 1


def test_a_header_error_may_pass_and_is_told_in_pds_words():
    pd = ScriptedPd()
    header = pd.header(type=pdpb.ErrorType.NOT_BOOTSTRAPPED, message="cluster is not bootstrapped")
    pd.on(PD["ScanRegions"], lambda _: pdpb.ScanRegionsResponse(header=header))
    with (
        served(pd),
        client(pd.address, pd_retry_seconds=0.0) as c,
        pytest.raises(Retryable, match="ScanRegions: cluster is not bootstrapped"),
    ):
        c.run(c.pd.scan_regions(b"", b"", 1))


def test_a_header_error_that_cannot_pass_ends_the_feed():
    pd = ScriptedPd()
    header = pd.header(type=pdpb.ErrorType.INCOMPATIBLE_VERSION, message="too old")
    pd.on(PD["GetAllStores"], lambda _: pdpb.GetAllStoresResponse(header=header))
    with served(pd), client(pd.address) as c, pytest.raises(SourceError, match="GetAllStores: too old"):
        c.run(c.pd.stores())


def test_a_server_that_is_no_pd_is_refused():
    other = Scripted()
    with (
        served(other),
        pytest.raises(SourceError, match=rf"{other.address}: GetMembers: it doesn't know this call"),
        client(other.address),
    ):
        pass


def test_an_old_pds_lists_of_regions_and_leaders_are_read_too():
    pd = ScriptedPd()
    metas = [metapb.Region(id=1, end_key=b"m"), metapb.Region(), metapb.Region(id=2, start_key=b"q")]
    leaders = [metapb.Peer(id=11, store_id=1)]
    pd.on(
        PD["ScanRegions"],
        lambda _: pdpb.ScanRegionsResponse(header=pd.header(), region_metas=metas, leaders=leaders),
    )
    with served(pd), client(pd.address) as c:
        first, missing, last = c.run(c.pd.scan_regions(b"", b"", 20))
    assert (first.id, first.end, first.leader.store_id) == (1, b"m", 1)
    assert missing is None
    assert (last.id, last.end, last.leader) == (2, UPPER_BOUND, None)


def test_removed_stores_are_left_out_unless_asked_for():
    pd = ScriptedPd()
    up = metapb.Store(id=1, address="a:1", version="6.1.0")
    labels = [metapb.StoreLabel(key="engine", value="tiflash")]
    gone = metapb.Store(id=2, address="b:1", state=metapb.StoreState.Tombstone, labels=labels)

    def stores(request):
        kept = [up] if request.exclude_tombstone_stores else [up, gone]
        return pdpb.GetAllStoresResponse(header=pd.header(), stores=kept)

    pd.on(PD["GetAllStores"], stores)
    with served(pd), client(pd.address) as c:
        assert [store.id for store in c.run(c.pd.stores())] == [1]
        _, removed = c.run(c.pd.stores(tombstones=True))
    assert removed.tombstone
    assert removed.tiflash


def test_the_members_say_what_they_run():
    with Cluster(stores=1, pd_members=2, version="7.5.1") as cluster, client(cluster.pd_address) as c:
        assert c.pd.members.versions == {"pd-0": "v7.5.1", "pd-1": "v7.5.1"}


def test_a_store_that_is_removed_by_its_node_state_is_a_tombstone():
    pd = ScriptedPd()
    gone = metapb.Store(id=2, address="b:1", state=metapb.StoreState.Offline)
    gone.node_state = metapb.NodeState.Removed
    pd.on(PD["GetStore"], lambda _: pdpb.GetStoreResponse(header=pd.header(), store=gone))
    with served(pd), client(pd.address) as c:
        assert c.run(c.pd.store(2)).tombstone
        gone.node_state = metapb.NodeState.Removing
        assert not c.run(c.pd.store(2)).tombstone


def test_an_old_pd_says_by_a_status_that_there_is_no_such_store():
    pd = ScriptedPd()

    def refuse(_request):
        raise Abort(grpc.StatusCode.UNKNOWN, "invalid store ID 77, not found")

    pd.on(PD["GetStore"], refuse)
    with served(pd), client(pd.address) as c:
        assert c.run(c.pd.store(77)) is None
    assert sum(isinstance(request, pdpb.GetStoreRequest) for request in pd.requests) == 1


def test_addresses_of_two_clusters_are_refused_naming_both():
    one, other = ScriptedPd(cluster_id=7), ScriptedPd(cluster_id=8)
    with (
        served(one, other),
        pytest.raises(
            SourceError, match=r"belongs to cluster (8, not 7|7, not 8): check the addresses of PD"
        ),
        client(f"{one.address},{other.address}"),
    ):
        pass
