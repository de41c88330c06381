"""The lag of a live feed: while it is idle, loads, is held up or away, and after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tidemill.engine.lag import NO_LAG
from tidemill.engine.status import FeedStatus
from tidemill.testing.faults.place import Place, stop
from tidemill.testing.progress import eventually


@pytest.fixture
def place(tmp_path: Path, mariadb_template: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        made = Place(tmp_path, mariadb_template, stack)
        made.source("--expire-logs-days=2")
        made.start()
        yield made


def until_idle(place: Place) -> FeedStatus:
    eventually(lambda: place.feed.status().idle, sign=lambda: place.feed.status().rows)
    return place.feed.status()


def total(place: Place) -> float:
    return place.feed.status().lag.total or 0.0


def grows(place: Place) -> None:
    """The lag is above that of an idle feed, and grows; the feed isn't called idle."""
    eventually(lambda: total(place) > 1.0)
    before = total(place)
    eventually(lambda: total(place) > before + 1.0)
    assert not place.feed.status().idle


def test_a_feed_at_rest_is_idle_without_lag_and_knows_the_sources_end(place: Place) -> None:
    place.write(10)
    eventually(lambda: place.feed.status().sinks[0].rows >= 11)
    status = until_idle(place)
    assert status.lag == NO_LAG
    assert status.connected
    assert status.head.startswith("binlog.")
    eventually(lambda: (place.feed.status().log_hours_left or 0.0) > 47)
    histograms = status.sinks[0].histograms
    assert histograms is not None
    assert sum(histograms.lag["total"].counts) >= 1
    assert histograms.batch_rows.total >= 11
    assert status.received.changes >= 1


def test_a_target_that_is_silent_is_behind_in_its_own_stages(place: Place) -> None:
    until_idle(place)
    place.to.pause()
    place.write()
    grows(place)
    lag = place.feed.status().lag
    assert lag.commit_to_received is not None
    assert lag.received_to_resolved is not None
    assert lag.commit_to_received + lag.received_to_resolved < (lag.total or 0.0) / 2
    place.to.resume()
    until_idle(place)


def test_a_target_that_is_away_without_changes_is_behind(place: Place) -> None:
    until_idle(place)
    place.to.kill()
    grows(place)
    place.to.start()
    until_idle(place)


def test_a_source_that_is_away_has_a_growing_lag_until_it_is_read_again(place: Place) -> None:
    until_idle(place)
    place.from_.kill()
    grows(place)
    status = place.feed.status()
    assert not status.connected
    place.from_.start()
    assert until_idle(place).received.reconnects == 1


def test_after_a_restart_the_lag_is_that_of_the_checkpoint_before_the_first_event(place: Place) -> None:
    until_idle(place)
    stop(place.feed)
    place.from_.kill()
    place.start_again(healthy=False)
    grows(place)
    place.from_.start()
    until_idle(place)


def test_a_frozen_network_is_not_called_idle(place: Place, tmp_path: Path, mariadb_template: Path) -> None:
    stop(place.feed)
    proxy = place.freezable(place.from_)
    place.document["source"]["url"] = place.document["source"]["url"].replace(
        f":{place.from_.port}/", f":{proxy.port}/"
    )
    place.start_again()
    until_idle(place)
    proxy.freeze()
    grows(place)
    proxy.thaw()
    until_idle(place)
