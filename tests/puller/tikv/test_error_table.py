"""The reaction to each error: the document's table."""

from __future__ import annotations

import grpc
import pytest

from tidemill.codec.proto import cdcpb
from tidemill.errors import InvariantViolated, SourceError
from tidemill.puller.tikv.feed.error_table import classify, classify_status, unavailable


def error(**fields):
    return cdcpb.Error(**fields)


@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        (error(not_leader={"region_id": 1, "leader": {"id": 3, "store_id": 2}}), "same_region", "NotLeader"),
        (error(not_leader={"region_id": 1}), "same_region", "NotLeader"),
        (error(region_not_found={"region_id": 1}), "redivide", "RegionNotFound"),
        (error(epoch_not_match={}), "redivide", "EpochNotMatch"),
        (error(server_is_busy={"reason": "much to do"}), "same_region", "ServerIsBusy"),
        (error(congested={"region_id": 1}), "same_region", "Congested"),
        (error(duplicate_request={"region_id": 1}), "fatal", "DuplicateRequest"),
        (error(compatibility={"required_version": "9.0.0"}), "fatal", "Compatibility"),
        (error(cluster_id_mismatch={"current": 1, "request": 2}), "fatal", "ClusterIDMismatch"),
        (error(), "same_region", "Unknown"),
        (cdcpb.Error.FromString(b"\xa2\x06\x00"), "same_region", "Unknown"),
    ],
    ids=lambda value: str(value).replace("\n", " ") if isinstance(value, str) else "",
)
def test_each_error_has_its_action(answer, kind, reason):
    action = classify(answer)
    assert (action.kind, action.reason) == (kind, reason)
    assert (action.error is not None) == (kind == "fatal")


def test_every_error_that_the_message_may_hold_is_in_the_table():
    for field in cdcpb.Error.DESCRIPTOR.fields:
        answer = cdcpb.Error()
        getattr(answer, field.name).SetInParent()
        assert classify(answer).reason != "Unknown", field.name


def test_not_leader_tells_the_new_leader_if_there_is_one():
    action = classify(error(not_leader={"region_id": 1, "leader": {"id": 3, "store_id": 2}}))
    assert (action.leader.id, action.leader.store_id) == (3, 2)
    assert classify(error(not_leader={"region_id": 1})).leader is None


def test_epoch_not_match_tells_the_regions_as_they_are_now():
    action = classify(error(epoch_not_match={"current_regions": [{"id": 1}, {"id": 5}]}))
    assert [region.id for region in action.current_regions] == [1, 5]


def test_a_busy_server_says_how_long_to_wait():
    assert classify(error(server_is_busy={"backoff_ms": 250})).wait == 0.25


def test_a_fatal_error_says_what_to_do():
    mismatch = classify(error(cluster_id_mismatch={"current": 11, "request": 22})).error
    assert isinstance(mismatch, SourceError)
    assert str(mismatch) == (
        "this TiKV belongs to cluster 11, PD says it is cluster 22; "
        "check that all PD addresses of the feed belong to one cluster"
    )
    compatibility = classify(error(compatibility={"required_version": "9.0.0"})).error
    assert isinstance(compatibility, SourceError)
    assert "at least version 9.0.0" in str(compatibility)
    duplicate = classify(error(duplicate_request={"region_id": 7})).error
    assert isinstance(duplicate, InvariantViolated)
    assert "region 7" in str(duplicate)


@pytest.mark.parametrize("code", list(grpc.StatusCode), ids=lambda code: code.name)
def test_a_stream_that_ends_is_a_store_that_did_not_answer_unless_it_refuses(code):
    action = classify_status(code, "because")
    refusals = {"UNIMPLEMENTED", "UNAUTHENTICATED", "PERMISSION_DENIED"}
    assert (action.kind == "fatal") == (code.name in refusals)
    assert action.kind in ("fatal", "send_failed")
    if action.kind == "fatal":
        assert "because" in str(action.error)


def test_a_region_without_a_store_to_ask_is_divided_anew():
    assert unavailable().kind == "redivide"
