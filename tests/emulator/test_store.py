"""A store's checks of a request's context over real gRPC."""

from __future__ import annotations

import grpc
import pytest

from tidemill.codec.proto import metapb


@pytest.fixture
def client(make_client):
    return make_client()


def error(client, context):
    return client.kv("KvGet", context, key=b"a", version=1).region_error


def test_a_peer_is_asked_for_by_its_id_not_by_its_store(client):
    context = client.context(b"a")
    peer = context["peer"]
    wrong = metapb.Peer(id=peer.id + 77, store_id=peer.store_id)
    found = error(client, context | {"peer": wrong}).mismatch_peer_id
    assert (found.request_peer_id, found.store_peer_id) == (wrong.id, peer.id)


def test_a_peer_that_comes_back_to_its_store_is_another_one(client):
    before = client.context(b"a")
    region = before["region_id"]
    client.cluster.transfer_leader(region, 2)
    client.cluster.remove_peer(region, 1)
    client.cluster.add_peer(region, 1)
    client.cluster.transfer_leader(region, 1)
    after = client.context(b"a")
    assert after["peer"].store_id == before["peer"].store_id == 1
    found = error(client, before).mismatch_peer_id
    assert (found.request_peer_id, found.store_peer_id) == (before["peer"].id, after["peer"].id)
    assert not error(client, after).ListFields()


def test_another_clusters_id_is_refused_and_none_is_not(client):
    mine = client.cluster.options.cluster_id
    for cluster_id in (0, mine):
        assert not error(client, client.context(b"a") | {"cluster_id": cluster_id}).ListFields()
    with pytest.raises(grpc.RpcError) as raised:
        error(client, client.context(b"a") | {"cluster_id": mine + 1})
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
