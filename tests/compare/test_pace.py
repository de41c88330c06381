"""The speed of a comparison, by a clock that the test sets."""

from __future__ import annotations

import pytest

from tidemill.compare.pace import ComparisonStopped, Pace


class Time:
    """A clock that a pause advances."""

    def __init__(self):
        self.seconds = 0.0
        self.pauses = []
        self.is_stopping = False

    def now(self):
        return self.seconds

    def wait(self, seconds):
        self.pauses.append(seconds)
        self.seconds += seconds
        return self.is_stopping


@pytest.fixture
def time():
    return Time()


def test_rows_are_spread_over_time(time):
    pace = Pace(100, time, time.wait)
    for _ in range(50):
        pace.spend(10)
    assert time.seconds == pytest.approx(5.0)


def test_time_that_reading_itself_took_counts(time):
    pace = Pace(100, time, time.wait)
    pace.spend(100)
    time.seconds += 0.4
    pace.spend(100)
    assert time.pauses == pytest.approx([1.0, 1.0])
    pace.spend(0)
    assert time.seconds == pytest.approx(2.4)


def test_no_more_rows_are_read_at_once_than_in_a_second(time):
    assert Pace(100, time, time.wait).limit(20_000) == 100
    assert Pace(0.5, time, time.wait).limit(20_000) == 1
    assert Pace(0, time, time.wait).limit(20_000) == 20_000


def test_without_a_limit_nothing_waits(time):
    pace = Pace(0, time, time.wait)
    pace.spend(1_000_000)
    assert time.seconds == 0


def test_a_request_to_stop_is_seen_at_every_pause(time):
    pace = Pace(0, time, time.wait)
    time.is_stopping = True
    with pytest.raises(ComparisonStopped):
        pace.spend(1)
