"""Updates of the region cache by a store's region errors."""

from __future__ import annotations

import pytest

from tidemill.codec.proto import errorpb, metapb
from tidemill.emulator.cluster import Cluster
from tidemill.puller.tikv.kv.region_call import follow

from .client import client


@pytest.fixture
def cluster():
    with Cluster(stores=3) as cluster:
        yield cluster


@pytest.fixture
def c(cluster):
    with client(cluster.pd_address) as c:
        yield c


@pytest.fixture
def context(c):
    return c.run(c.cache.rpc_context(c.run(c.cache.locate(b"k"))))


def learnt(c, context, **error):
    """The leader's store that is known afterwards, if the region still is, and the seconds to wait."""
    wait = follow(c.cache, context, errorpb.Error(message="", **error))
    region = c.cache.cached(context.region.id)
    return region and region.leader.store_id, wait


def test_a_named_leader_is_taken_and_without_one_the_next_peer(c, context):
    leader = metapb.Peer(id=context.region.peers[2].id, store_id=3)
    assert learnt(c, context, not_leader=errorpb.NotLeader(leader=leader)) == (3, 0)
    assert learnt(c, context, not_leader=errorpb.NotLeader()) == (1, 0)


def test_the_regions_that_it_has_become_are_taken(c, context):
    current = metapb.Region(id=context.region.id, region_epoch=metapb.RegionEpoch(conf_ver=1, version=9))
    current.peers.add(id=21, store_id=context.store_id)
    error = errorpb.EpochNotMatch(current_regions=[current])
    assert learnt(c, context, epoch_not_match=error) == (context.store_id, 0)
    assert c.cache.cached(context.region.id).version == 9


@pytest.mark.parametrize(
    "error",
    [
        {"region_not_found": errorpb.RegionNotFound()},
        {"key_not_in_region": errorpb.KeyNotInRegion()},
        {"store_not_match": errorpb.StoreNotMatch()},
        {"mismatch_peer_id": errorpb.MismatchPeerId()},
        {"epoch_not_match": errorpb.EpochNotMatch()},
        {},  # a newer store's error, in a field that is not declared
    ],
    ids=lambda error: next(iter(error), "unknown"),
)
def test_a_region_that_is_known_too_badly_is_forgotten(c, context, error):
    assert learnt(c, context, **error) == (None, 0)


@pytest.mark.parametrize(
    "error",
    [
        {"stale_command": errorpb.StaleCommand()},
        {"max_timestamp_not_synced": errorpb.MaxTimestampNotSynced()},
        {"proposal_in_merging_mode": errorpb.ProposalInMergingMode()},
        {"disk_full": errorpb.DiskFull()},
    ],
    ids=lambda error: next(iter(error)),
)
def test_what_passes_by_itself_changes_nothing(c, context, error):
    assert learnt(c, context, **error) == (1, 0)


def test_a_busy_store_says_how_long_to_wait(c, context):
    assert learnt(c, context, server_is_busy=errorpb.ServerIsBusy(backoff_ms=250)) == (1, 0.25)


def test_a_store_with_another_id_at_its_address_has_its_address_asked_for_again(c, context, monkeypatch):
    asked = []

    async def store(store_id):
        asked.append(store_id)

    monkeypatch.setattr(c.pd, "store", store)
    c.run(c.cache.store(1))
    assert asked == []
    learnt(c, context, store_not_match=errorpb.StoreNotMatch())
    c.run(c.cache.store(1))
    assert asked == [1]
