"""The speed of a verification, by a clock that only the test moves."""

from __future__ import annotations

import pytest

from tidemill.actors import ManualClock
from tidemill.compare.pace import Pace
from tidemill.compare.schedule import LEAST_ROWS_PER_SECOND, Schedule
from tidemill.compare.verifier import RANGE_SECONDS

DAY = 86_400.0


class Pass:
    """A pass over tables, whose ranges each take the time that the test says; no database is read."""

    def __init__(self, every, *, rows, estimated, share=1.0, most=0.0, seconds_of=lambda rows: 0.0):
        self.clock = ManualClock()
        self.longest = 0.0
        self.largest = 0
        self.worked = 0.0
        schedule, began, done = Schedule(every, most), self.clock.time(), 0
        pace = Pace(most, self.clock, self._wait, share=share, range_seconds=RANGE_SECONDS)
        while done < rows:
            pace.rows_per_second = schedule.rows_per_second(began, self.clock.time(), done, estimated)
            count = min(pace.limit(20_000), rows - done)
            seconds = seconds_of(count)
            self.clock.advance(seconds)
            self.worked += seconds
            self.largest = max(self.largest, count)
            pace.spend(count)
            done += count
        self.seconds = self.clock.time() - began

    def _wait(self, seconds):
        self.longest = max(self.longest, seconds)
        self.clock.advance(seconds)
        return False


@pytest.mark.parametrize("estimated", [100_000_000, 60_000_000, 150_000_000])
def test_a_pass_ends_within_its_period_though_the_number_of_rows_is_estimated(estimated):
    one = Pass(DAY, rows=100_000_000, estimated=estimated)
    assert 0.5 * DAY < one.seconds < DAY
    assert one.longest < RANGE_SECONDS


def test_a_small_table_is_compared_early_and_by_ranges_that_are_no_single_rows():
    one = Pass(DAY, rows=10_000, estimated=10_000)
    assert one.seconds == pytest.approx(10_000 / LEAST_ROWS_PER_SECOND)
    assert one.largest == LEAST_ROWS_PER_SECOND * RANGE_SECONDS


def test_no_more_than_the_share_of_the_time_is_used_though_the_pass_takes_longer():
    one = Pass(60.0, rows=400_000, estimated=400_000, share=0.05, seconds_of=lambda rows: rows / 100_000)
    assert one.worked == pytest.approx(4.0)
    assert one.seconds == pytest.approx(80.0, rel=0.01)


def test_a_limit_of_rows_goes_before_the_period():
    one = Pass(600.0, rows=40_000, estimated=40_000, most=25.0)
    assert one.seconds == pytest.approx(1_600.0)
    assert one.largest == 25 * RANGE_SECONDS


def test_without_an_estimate_only_the_share_and_the_limit_count():
    assert Pass(DAY, rows=1_000_000, estimated=0).seconds == 0
    assert Pass(DAY, rows=1_000, estimated=0, most=100.0).seconds == pytest.approx(10.0)


def test_the_next_pass_is_due_a_period_after_the_beginning_of_the_last():
    schedule = Schedule(DAY, 0)
    assert schedule.seconds_left(1_000.0, 1_000.0 + DAY / 4) == DAY * 3 / 4
    assert schedule.seconds_left(1_000.0, 1_000.0 + 2 * DAY) < 0
    assert schedule.seconds_left(1_000.0, 10.0) == DAY
