"""Requests about a change that waits for other feeds: what is said, and what is refused."""

from __future__ import annotations

import pytest

from tidemill.errors import ConfigError
from tidemill.sharding import FeedWait, LockStatus, Unlock, plan_unlock


def lock(*, step: str = "waiting", south: str = "", runs: bool = True) -> LockStatus:
    """Return a lock that north owns."""
    feeds = [
        FeedWait("north", "ALTER", 3.0, is_owner=True, is_running=runs, step=step),
        FeedWait("south", south, 2.0 if south else None, is_running=runs, step=step),
    ]
    made = [f"feed {one.feed}" for one in feeds if one.query]
    lacks = [f"feed {one.feed}" for one in feeds if not one.query]
    return LockStatus("l", "copy", "feed north", "ALTER", "change 1", made, lacks, 3.0, 0, feeds=feeds)


def test_a_feed_that_runs_starts_again_without_the_change():
    request, said = plan_unlock([lock()], "l")
    assert request == Unlock("l", "change 1")
    assert said == [
        "execute 'ALTER' of feed north in the merged table",
        "let feed north go on, with 0 held rows",
        "skip the same statement of feed south when it comes",
        "have feed south start again from its checkpoint, without the change",
    ]
    assert len(plan_unlock([lock(runs=False)], "l")[1]) == 3


def test_another_owner_is_a_feed_that_has_made_the_change():
    request, said = plan_unlock([lock(south="ALTER")], "l", owner="south")
    assert request.owner == "feed south"
    assert said[0] == "execute 'ALTER' of feed south in the merged table"
    with pytest.raises(ConfigError, match=r"^feed south isn't waiting with l: .*; waiting are: feed north$"):
        plan_unlock([lock()], "l", owner="south")


def test_a_feed_that_has_left_is_removed():
    request, said = plan_unlock([lock(runs=False)], "l", remove="south")
    assert request == Unlock("l", "change 1", remove="south")
    assert said == ["wait for feed south no more; its rows stay, and it can't continue"]
    _, said = plan_unlock([lock(runs=False, south="ALTER")], "l", remove="north")
    assert said[1] == "have feed south execute 'ALTER'"
    _, said = plan_unlock([lock(runs=False)], "l", remove="north")
    assert said[1] == "forget 'ALTER', which no other feed has made"


@pytest.mark.parametrize(
    ("status", "feed", "sentence"),
    [
        (lock(), "south", "^feed south runs: stop it before it is removed"),
        (lock(runs=False), "west", "^l: no feed west shares the merged table; there are: north, south"),
        (lock(runs=False, step="executing"), "north", "^feed north may have executed 'ALTER': let another"),
    ],
)
def test_a_feed_that_may_come_back_isn_t_removed(status, feed, sentence):
    with pytest.raises(ConfigError, match=sentence):
        plan_unlock([status], "l", remove=feed)
