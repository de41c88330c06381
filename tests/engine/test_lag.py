"""The lag model by itself: a sorter's logs, checkpoints and a source's head in, lags out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidemill.engine.lag import NO_LAG, Lag
from tidemill.engine.lag_model import RECENT_SECONDS, LagModel
from tidemill.events import Checkpoint, Receipts, TablePosition, WatermarkLog, compose_ts
from tidemill.puller.puller import PullerStatistics, SourceHead

EPOCH = 1_700_000_000.0
"""Time of this machine and of the source at now() = 0."""


def ts(seconds: float) -> int:
    """The ts of a moment, in seconds of now()."""
    return compose_ts(round((EPOCH + seconds) * 1000))


class Feed:
    """A model with one sink, whose stages are played."""

    def __init__(self, checkpoint: float | None = 0.0) -> None:
        self.model = LagModel()
        self.wall = EPOCH
        at = None if checkpoint is None else Checkpoint(ts(checkpoint), "a:1")
        self.model.open({"copy": at})
        self.begin()

    def begin(self) -> None:
        self.sorter: Any = SimpleNamespace(receipts=Receipts(), resolved_log=WatermarkLog())
        self.written = WatermarkLog()
        delivery: Any = SimpleNamespace(sink=SimpleNamespace(name="copy"), written=self.written)
        self.model.begin(self.sorter, [delivery])

    def receive(self, committed: float, now: float) -> None:
        self.sorter.receipts.note(ts(committed), ts(committed), now, 1, 100)

    def resolve(self, upto: float, now: float) -> None:
        self.sorter.resolved_log.note(ts(upto), now)

    def acknowledge(self, upto: float, now: float, **more: Any) -> None:
        self.model.acknowledged("copy", Checkpoint(ts(upto), "a:2", **more), (now, self.wall + now))

    def look(self, now: float, **head: Any) -> None:
        statistics = PullerStatistics("following", "", 0, 0, 0, 0, 0, 0, 1.0, 0, SourceHead(**head))
        self.model.look(statistics, now)

    def lag(self, now: float) -> Lag:
        return self.model.lag("copy", (now, self.wall + now))


def close(lag: Lag) -> list[float]:
    assert lag.total is not None
    parts = [
        lag.commit_to_received,
        lag.received_to_resolved,
        lag.resolved_to_written,
        lag.written_to_durable,
    ]
    known = [part for part in parts if part is not None]
    assert sum(known) == pytest.approx(lag.total, abs=2e-3), "the parts are the whole"
    return [round(part, 2) for part in known]


def test_the_stage_that_the_oldest_change_is_in_grows():
    feed = Feed()
    feed.look(9.0, clock_offset=EPOCH, caught_up_at=9.0)
    feed.receive(10.0, now=10.5)
    assert close(feed.lag(12.0)) == [0.5, 1.5, 0, 0]
    feed.resolve(10.0, now=12.5)
    feed.receive(20.0, now=20.0)
    assert close(feed.lag(21.0)) == [0.5, 2.0, 8.5, 0]
    feed.written.note(ts(10.0), 21.5)
    assert close(feed.lag(31.5)) == [0.5, 2.0, 9.0, 10.0]
    feed.acknowledge(10.0, now=32.0)
    assert close(feed.lag(33.0)) == [0.0, 13.0, 0, 0], "now the next one is the oldest"
    counts = feed.model.histograms("copy").lag
    assert counts["total"].total == pytest.approx(22.0, abs=0.01)
    assert sum(counts["total"].counts) == 1


def test_a_sink_that_has_everything_has_no_lag_and_the_feed_is_idle_while_the_source_is_heard():
    feed = Feed()
    feed.look(100.0, clock_offset=EPOCH, caught_up_at=100.0)
    assert feed.lag(100.5) == NO_LAG
    assert feed.model.is_idle(100.5)
    silent = 100.0 + RECENT_SECONDS + 1
    assert not feed.model.is_idle(silent), "nobody knows what the source has by now"
    assert close(feed.lag(silent)) == [RECENT_SECONDS + 1, 0, 0, 0]
    assert close(feed.lag(silent + 60)) == [RECENT_SECONDS + 61, 0, 0, 0]


def test_a_feed_with_a_waiting_change_is_never_idle():
    feed = Feed()
    feed.receive(99.0, now=99.5)
    feed.look(100.0, clock_offset=EPOCH, caught_up_at=100.0)
    assert not feed.model.is_idle(100.0)
    feed.acknowledge(99.0, now=100.1)
    assert feed.model.is_idle(100.2)


@pytest.mark.parametrize("more", [{"loading": {}}, {"tables": {"shop.a": TablePosition(1, "a:0")}}])
def test_a_feed_whose_target_lacks_a_table_is_not_idle(more):
    feed = Feed()
    feed.look(100.0, clock_offset=EPOCH, caught_up_at=100.0)
    feed.acknowledge(99.0, now=100.0, **more)
    assert not feed.model.is_idle(100.0)


def test_a_target_that_is_away_while_nothing_is_changed_is_behind():
    feed = Feed(90.0)
    feed.resolve(95.0, now=97.0)
    feed.look(100.0, clock_offset=EPOCH, caught_up_at=100.0)
    assert feed.lag(100.0) == NO_LAG, "a checkpoint without rows takes a moment"
    feed.look(110.0, clock_offset=EPOCH, caught_up_at=110.0)
    assert close(feed.lag(110.0))[2] == 13.0
    assert not feed.model.is_idle(110.0)


def test_after_a_restart_the_lag_is_that_of_the_checkpoint():
    assert Feed(None).lag(50.0) == Lag()
    feed = Feed(10.0)
    assert close(feed.lag(50.0)) == [40.0, 0, 0, 0]
    feed.look(50.0, clock_offset=EPOCH, read_until=EPOCH + 30.0)
    assert close(feed.lag(51.0)) == [21.0, 0, 0, 0], "everything up to 30 was received, and nothing was in it"


def test_between_two_pipelines_the_lag_grows_from_the_checkpoint():
    feed = Feed(10.0)
    feed.look(11.0, clock_offset=EPOCH, caught_up_at=11.0)
    feed.receive(10.5, now=10.6)
    feed.model.leave()
    assert close(feed.lag(15.0)) == [5.0, 0, 0, 0]
    feed.begin()
    assert close(feed.lag(20.0)) == [10.0, 0, 0, 0]
    assert feed.model.arrived.changes == 1


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_jump_of_this_machines_clock_is_no_lag(jump):
    feed = Feed()
    feed.look(9.0, clock_offset=EPOCH, caught_up_at=9.0)
    feed.receive(10.0, now=10.5)
    feed.wall += jump
    assert close(feed.lag(12.0)) == [0.5, 1.5, 0, 0]


def test_the_source_is_caught_up_by_what_it_says_though_its_clock_stands():
    feed = Feed()
    feed.look(1000.0, clock_offset=EPOCH, caught_up_at=1000.0, read_until=EPOCH + 5.0)
    assert feed.lag(1000.0) == NO_LAG


def test_logs_are_bounded_and_keep_the_oldest():
    receipts, log = Receipts(), WatermarkLog()
    for number in range(1, 100_001):
        receipts.note(number, number, number / 10, 1, 1)
        log.note(number, number / 10)
    assert len(receipts._marks) <= 256
    assert len(log._marks) <= 256
    oldest = receipts.oldest(0)
    assert oldest is not None
    assert (oldest.first, oldest.at) == (1, 0.1)
    assert receipts.oldest(99_999) is not None
    assert receipts.oldest(100_000) is None
    reached = log.reached(99_990)
    assert reached is not None
    assert reached >= 9_999.0
    receipts.forget(100_000)
    assert receipts.oldest(0) is None
