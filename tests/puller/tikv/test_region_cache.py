"""A region cache over an emulated cluster: what its moves and failures lead to."""

from __future__ import annotations

import pytest

from tidemill.actors import ManualClock
from tidemill.codec.proto import PD, metapb, pdpb
from tidemill.codec.tidb.key import encode_bytes
from tidemill.emulator.cluster import Cluster
from tidemill.errors import Retryable
from tidemill.puller.tikv.span import UPPER_BOUND, Span, table_span

from .client import client
from .scripted import ScriptedPd, served

EVERYTHING = Span(b"", UPPER_BOUND)


@pytest.fixture
def cluster():
    with Cluster(stores=3) as cluster:
        yield cluster


@pytest.fixture
def c(cluster):
    with client(cluster.pd_address, region_retry_seconds=0.0) as c:
        yield c


def load_all(c, span, limit=20):
    """Every region of a span, batch by batch, as a span is divided."""
    regions = []
    while span.start < span.end:
        regions += c.run(c.cache.load(span, limit))
        span = Span(regions[-1].end, span.end)
    return regions


def test_batches_of_regions_cover_a_span_whole(cluster, c):
    cluster.pave(b"k%03d" % n for n in range(100))
    regions = load_all(c, EVERYTHING)
    assert len(regions) == len(c.cache) == 101
    assert [r.start for r in regions] == [b"", *(r.end for r in regions[:-1])]
    assert regions[-1].end == UPPER_BOUND


def test_a_table_without_a_region_of_its_own_lies_in_a_larger_one(cluster, c):
    (region,) = c.run(c.cache.load(table_span(42)))
    assert (region.start, region.end) == (b"", UPPER_BOUND)


def test_requests_follow_a_region_that_splits_and_merges(cluster, c):
    (before,) = load_all(c, EVERYTHING)
    cluster.split(b"m")
    left, right = load_all(c, EVERYTHING)
    assert c.run(c.cache.rpc_context(before)) is None
    assert right.id == before.id
    assert left.end == right.start == encode_bytes(b"m")
    cluster.merge(left.id)
    (merged,) = load_all(c, EVERYTHING)
    assert len(c.cache) == 1
    assert c.run(c.cache.rpc_context(left)) is None
    assert c.run(c.cache.rpc_context(merged)).region == merged


def test_a_context_has_what_a_request_needs(cluster, c):
    region = c.run(c.cache.locate(encode_bytes(b"k")))
    leader = cluster.transfer_leader(region.id, 2)
    assert leader == 2
    c.cache.invalidate(region.id)
    region = c.run(c.cache.locate(encode_bytes(b"k")))
    context = c.run(c.cache.rpc_context(region))
    assert (context.region, context.peer, context.store_id) == (region, region.leader, 2)
    assert context.address == c.run(c.pd.store(2)).address


def test_a_store_that_failed_is_passed_over(cluster, c):
    region = c.run(c.cache.locate(b"k"))
    context = c.run(c.cache.rpc_context(region))
    c.cache.on_send_fail(context)
    again = c.run(c.cache.rpc_context(region.id))
    assert again.store_id != context.store_id


@pytest.mark.parametrize("key", [b"k", encode_bytes(b"k")])
def test_a_key_is_located_without_pd_once_it_is_known(cluster, c, key):
    region = c.run(c.cache.locate(key))
    cluster.pd_down()
    assert c.run(c.cache.locate(key)) == region


def test_a_span_that_pd_never_covers_is_told_after_a_while():
    pd = ScriptedPd()
    asked = []

    def nothing(request):
        asked.append(request)
        return pdpb.ScanRegionsResponse(header=pd.header())

    pd.on(PD["ScanRegions"], nothing)
    with (
        served(pd),
        client(pd.address, clock=ManualClock(), region_retry_seconds=0.05) as c,
        pytest.raises(Retryable, match=r"PD's regions don't cover \[, ffffffffff\): no regions"),
    ):
        c.run(c.cache.load(EVERYTHING))
    assert len(asked) > 2
    assert {request.limit for request in asked} == {20}


def test_a_region_without_meta_data_is_asked_for_again():
    pd = ScriptedPd()
    answers = [
        [pdpb.Region(region=metapb.Region(id=1, end_key=b"m")), pdpb.Region()],
        [pdpb.Region(region=metapb.Region(id=1))],
    ]
    pd.on(PD["ScanRegions"], lambda _: pdpb.ScanRegionsResponse(header=pd.header(), regions=answers.pop(0)))
    with served(pd), client(pd.address) as c:
        (region,) = c.run(c.cache.load(EVERYTHING))
    assert region.end == UPPER_BOUND
    assert answers == []
