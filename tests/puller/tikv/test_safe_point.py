"""Keeping the versions that a feed still has to read from being collected."""

from __future__ import annotations

import asyncio

import pytest

from tidemill.actors import ManualClock
from tidemill.emulator.cluster import Cluster
from tidemill.errors import Retryable, SourceError
from tidemill.puller.tikv.pd.safe_point import SafePoint

from .client import client


@pytest.fixture
def cluster():
    with Cluster(stores=1) as cluster:
        yield cluster


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def c(cluster, clock):
    with client(cluster.pd_address, clock=clock, pd_retry_seconds=0.0, gc_ttl_seconds=100) as c:
        yield c


class Feed:
    """A safe point whose checkpoint is what the test says."""

    def __init__(self, c, checkpoint: int) -> None:
        self.checkpoint = checkpoint
        self.safe_point = SafePoint(c.options, c.pd, c.clock, "tidemill-orders", lambda: self.checkpoint)


def test_garbage_is_kept_from_the_start_ts_on_and_from_the_checkpoint_later(cluster, c):
    start = cluster.tso()
    feed = Feed(c, start)
    c.run(feed.safe_point.start(start))
    assert cluster.gc(cluster.tso()) == start - 1
    feed.checkpoint = cluster.tso()
    c.run(feed.safe_point.renew())
    assert cluster.gc(cluster.tso()) == feed.checkpoint - 1


def test_a_margin_is_kept_as_long_as_it_is_there(cluster, c):
    early = cluster.tso()
    cluster.jump_clock(30)
    start = cluster.tso()
    safe_point = SafePoint(c.options, c.pd, c.clock, "tidemill-orders", lambda: start, margin_seconds=60.0)
    c.run(safe_point.start(start))
    assert cluster.gc(cluster.tso()) < early
    c.run(safe_point.remove())
    c.run(c.pd.update_service_gc_safe_point("gc_worker", (1 << 63) - 1, early))
    c.run(safe_point.start(start))
    c.run(c.pd.update_service_gc_safe_point("gc_worker", (1 << 63) - 1, cluster.tso()))
    assert cluster.gc(cluster.tso()) == start - 1


def test_a_start_ts_that_garbage_collection_has_passed_is_refused_with_both(cluster, c):
    start = cluster.tso()
    gone = cluster.gc(cluster.tso())
    with pytest.raises(
        SourceError, match=rf"start ts {start} \(\d+-.* UTC\) is below the GC safe point {gone} .*start again"
    ):
        c.run(Feed(c, start).safe_point.start(start))


def test_a_start_ts_just_above_the_safe_point_is_taken(cluster, c):
    gone = cluster.gc(cluster.tso())
    c.run(Feed(c, gone + 1).safe_point.start(gone + 1))
    with pytest.raises(SourceError, match="below the GC safe point"):
        c.run(Feed(c, gone).safe_point.start(gone))


def test_what_the_gc_worker_is_about_to_collect_counts_as_gone(cluster, c):
    start, planned = cluster.tso(), cluster.tso()
    c.run(c.pd.update_service_gc_safe_point("gc_worker", (1 << 63) - 1, planned))
    with pytest.raises(SourceError, match=f"below the GC safe point {planned}"):
        c.run(Feed(c, start).safe_point.start(start))


def test_another_service_that_needs_more_is_no_matter(cluster, c):
    early, start = cluster.tso(), cluster.tso()
    c.run(c.pd.update_service_gc_safe_point("backup", 3600, early))
    c.run(Feed(c, start).safe_point.start(start))


def test_a_hold_that_lapsed_before_the_feed_came_back_ends_it(cluster, c):
    start = cluster.tso()
    feed = Feed(c, start)
    c.run(feed.safe_point.start(start))
    cluster.jump_clock(101)
    c.run(c.pd.update_service_gc_safe_point("another", 0, 0))  # PD looks at what has expired when it is asked
    gone = cluster.gc(cluster.tso())
    with pytest.raises(SourceError, match=rf"come to ts {start} .*the GC safe point is at {gone}"):
        c.run(feed.safe_point.renew())


def test_a_hold_outlives_the_feed_until_it_is_removed(cluster, c):
    start = cluster.tso()
    feed = Feed(c, start)
    c.run(feed.safe_point.start(start))
    assert cluster.gc(cluster.tso()) == start - 1
    c.run(feed.safe_point.remove())
    now = cluster.tso()
    assert cluster.gc(now) == now


def test_a_pd_that_is_silent_is_a_warning_until_the_hold_has_lapsed(cluster, c, clock, caplog):
    start = cluster.tso()
    feed = Feed(c, start)
    c.run(feed.safe_point.start(start))
    cluster.pd_down()
    clock.advance(99)
    c.run(feed.safe_point.renew())
    assert "GC safe point tidemill-orders" in caplog.text
    clock.advance(1)
    with pytest.raises(SourceError, match="could not be renewed for 100 s and has expired"):
        c.run(feed.safe_point.renew())


@pytest.mark.parametrize(("service", "ttl_seconds"), [("", 60), ("gc_worker", 60), ("gc_worker", 0)])
def test_a_service_that_pd_never_takes_is_not_asked_for_again(cluster, service, ttl_seconds):
    with (
        client(cluster.pd_address) as c,
        pytest.raises(SourceError, match="UpdateServiceGCSafePoint: "),
    ):
        c.run(c.pd.update_service_gc_safe_point(service, ttl_seconds, cluster.tso()))


def test_a_start_without_pd_may_be_tried_again(cluster, c):
    cluster.pd_down()
    with pytest.raises(Retryable, match="no answer from PD"):
        c.run(Feed(c, 1).safe_point.start(1))


def test_the_hold_is_renewed_again_and_again(cluster):
    with client(cluster.pd_address, gc_interval_seconds=0.01) as c:
        feed = Feed(c, cluster.tso())
        asked = 0

        def checkpoint():
            nonlocal asked
            asked += 1
            if asked == 3:
                done.set()
            return feed.checkpoint

        safe_point = SafePoint(c.options, c.pd, c.clock, "tidemill-orders", checkpoint)
        done = asyncio.Event()

        async def run():
            running = c.loop.spawn(safe_point.run())
            await done.wait()
            running.cancel()

        c.run(run())
    assert asked >= 3


def test_the_run_ends_when_the_versions_are_gone(cluster):
    with client(cluster.pd_address, gc_interval_seconds=0.01) as c:
        feed = Feed(c, cluster.tso())
        cluster.gc(cluster.tso())
        with pytest.raises(SourceError, match="start again with a new snapshot"):
            c.run(feed.safe_point.run())
