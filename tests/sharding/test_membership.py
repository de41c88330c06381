"""Claims of feeds and their sources: one process each, kept by heartbeats."""

from __future__ import annotations

import pytest

from tidemill.actors import ManualClock
from tidemill.errors import Retryable
from tidemill.sharding import ClaimedElsewhere, Membership

from .feeds import DictRevisions


def member(store, feed, *sources, token="", clock=None):
    where = f"host of {token or feed}"
    return Membership(store, feed, sources, token or feed, where, clock or ManualClock())


def test_a_feed_knows_which_feeds_run():
    store = DictRevisions()
    north, south = member(store, "north", "a"), member(store, "south", "b")
    north.claim()
    south.claim()
    assert south.running() == {"north", "south"}
    south.close()
    north.claim()
    assert north.running() == {"north"}


def test_a_second_process_of_a_feed_is_refused():
    store = DictRevisions()
    member(store, "north", "a").claim()
    with pytest.raises(
        ClaimedElsewhere, match=r"^feed north is run by another process, host of north: stop it"
    ):
        member(store, "north", "a", token="other").claim()


def test_a_feed_that_was_killed_goes_on_at_once_in_its_directory():
    store = DictRevisions()
    member(store, "north", "a").claim()
    member(store, "north", "a").claim()


def test_a_second_feed_with_a_source_is_refused_and_leaves_nothing():
    store = DictRevisions()
    member(store, "north", "a", "b").claim()
    with pytest.raises(
        ClaimedElsewhere, match=r"^source b is run by another process of feed north, host of no"
    ):
        member(store, "south", "b", "c").claim()
    assert [*store.records] == ["feed/north"]


def test_a_feed_whose_claim_was_taken_may_write_no_more():
    store = DictRevisions()
    north, other = member(store, "north"), member(store, "north", token="other")
    north.claim()
    store.records.clear()  # its time has passed
    other.claim()
    north.beat()
    with pytest.raises(ClaimedElsewhere, match=r"^feed north is run by another process, host of other"):
        north.check()
    north.close()
    assert [*store.records] == ["feed/north"]


def test_a_feed_whose_claim_has_ended_claims_again():
    store = DictRevisions()
    north = member(store, "north")
    north.claim()
    store.records.clear()
    north.beat()
    north.check()
    assert [*store.records] == ["feed/north"]


def test_a_feed_without_heartbeats_may_write_no_more_until_the_next():
    store, clock = DictRevisions(), ManualClock()
    north = member(store, "north", clock=clock)
    north.claim()
    north.start()
    try:
        clock.advance(0)
        north.check()
        north._beaten -= 11  # as if the process had been stopped
        with pytest.raises(Retryable, match="no heartbeat was written for 10 s"):
            north.check()
        north.beat()
        north.check()
    finally:
        north.close()
