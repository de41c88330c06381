"""As many tables and regions as a large cluster has, in one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest

from tidemill.testing.progress import RetryDelay, slowdown

from .many_follower import Following, Taken, following_many
from .served import Served, served

FEED_BYTES = 32 << 20
"""Memory of a feed of one table."""
REGION_BYTES, MANY_REGION_BYTES = 2_250, 2_300
"""Beyond it, of the whole feed, with a region's part of its table: SpanPuller, Writer, range lock, frontier,
schema, cache. It is about 2,020, and a tenth more on a busy machine, as pages that are used in part can't be
given back. Of many regions it is more, by what malloc holds of the time they were all registered."""
THREADS = 16
LAG_SECONDS = 60
IDLE_CPU = 0.2


class Feed:
    """A feed of all tables, up to where every region is followed."""

    def __init__(self, cluster: Served, following: Following, tables: int) -> None:
        self._cluster = cluster
        self._following = following
        self._tables = tables
        self._random = Random(0)
        self._written = 0
        self.change(1, seconds=600)

    def change(self, rows: int, seconds: float = LAG_SECONDS) -> Taken:
        """Write some rows in any tables, and wait for them."""
        self._written += rows
        numbers = self._random.sample(range(self._tables), rows)
        self._cluster("put", [[number, self._written, "changed"] for number in numbers])
        return self.until(lambda taken, _: taken.rows == self._written, seconds)

    def until(self, condition: Callable[[Taken, Taken], bool], seconds: float) -> Taken:
        """Look every second until two looks say so; the last. Raises Stalled, later on a busy machine."""
        before = self._following.look()
        delay = RetryDelay(seconds=seconds)
        while True:
            wait(1)
            taken = self._following.look()
            if condition(taken, before):
                return taken
            before = taken
            delay.check()

    def look(self) -> Taken:
        return self._following.look()


def wait(seconds: float) -> None:
    Event().wait(seconds)


def follow(
    directory: Path,
    tables: int,
    regions: int,
    most_bytes: int,
    check: Callable[[Served, Feed], None],
) -> None:
    with served(stores=3) as cluster:
        made = cluster("tables", tables, regions)
        options: dict[str, Any] = {
            "data_dir": str(directory),
            "source": {
                "url": f"tikv://{cluster.pd_address}",
                "tables": ["many.*"],
                "start_ts": cluster("tso"),
            },
        }
        with following_many(options) as following:
            feed = Feed(cluster, following, tables)
            taken = feed.look()
            region_bytes = (taken.resident_bytes - FEED_BYTES) / made
            print(f"{tables:,} tables, {made:,} regions: {region_bytes:.0f} bytes a region")
            assert region_bytes < most_bytes
            assert taken.threads <= THREADS
            check(cluster, feed)


def changes_arrive(feed: Feed) -> None:
    lags = [feed.change(20).lag_seconds for _ in range(5)]
    print("behind by", ", ".join(f"{lag:.1f} s" for lag in lags))
    assert max(lags) < LAG_SECONDS * slowdown()


def nothing_is_polled(cluster: Served, feed: Feed, tables: int) -> None:
    """While no resolved ts comes, no table has a turn."""
    cluster("play", "pause_resolved")
    feed.until(lambda taken, before: taken.turns - before.turns < tables // 100, LAG_SECONDS)


def idles(feed: Feed) -> None:
    before = feed.look()
    wait(30)
    taken = feed.look()
    part = (taken.cpu_seconds - before.cpu_seconds) / (taken.seconds - before.seconds)
    print(f"idle: {part:.2f} of a core")
    assert part < IDLE_CPU


@pytest.mark.long
def test_ten_thousand_tables_take_little_and_stay_near(tmp_path):
    def check(cluster: Served, feed: Feed) -> None:
        changes_arrive(feed)
        nothing_is_polled(cluster, feed, 10_000)

    follow(tmp_path, 10_000, 27_000, REGION_BYTES, check)


@pytest.mark.soak
def test_a_hundred_thousand_tables_take_little_and_stay_near(tmp_path):
    def check(cluster: Served, feed: Feed) -> None:
        changes_arrive(feed)
        idles(feed)
        nothing_is_polled(cluster, feed, 100_000)

    follow(tmp_path, 100_000, 270_000, MANY_REGION_BYTES, check)
