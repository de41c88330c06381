"""How often a region's failures are acted on, as text; times are in milliseconds of a manual clock.

`fail` tells which failures are acted on at once. `--rewrite` writes down what happens now.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.actors import ManualClock
from tidemill.puller.tikv.feed.retry_limiter import ROUND, ROUND_SECONDS, RetryLimiter
from tidemill.testing import cases

CASES = Path(__file__).with_name("retry_limiter.txt")


@pytest.mark.parametrize("case", cases.load(CASES), ids=cases.title)
def test_case(case, rewrite):
    case.expect(play(case.commands), rewrite)


def play(block: str) -> str:
    limiter: RetryLimiter[str] = RetryLimiter()
    clock = ManualClock()
    out = []
    for line in block.splitlines():
        ms, *words = line.split()
        clock.advance(int(ms) / 1000 - clock.now())
        match words:
            case ["fail", region, *failures]:
                done = [failure for failure in failures if limiter.admit(int(region), failure, clock.now())]
                out.append(f"{ms}: {' '.join(done) or 'nothing'}")
            case ["due"]:
                out.append(f"{ms}: {' '.join(limiter.due(clock.now())) or 'nothing'}")
            case ["hint", region]:
                out.append(f"{ms}: {'speaks' if limiter.hint(int(region), clock.now()) else 'is silent'}")
            case ["kept"]:
                out.append(f"{ms}: {len(limiter)} regions, {limiter.parked} parked")
    return "\n".join(out)


def test_a_round_looks_at_128_at_most_and_the_next_goes_on_behind_them():
    limiter = RetryLimiter()
    for region in range(300):
        for number in range(4):
            limiter.admit(region, (region, number), 0.0)
    assert limiter.parked == 300
    rounds = []
    now = 0.1
    while limiter.parked:
        rounds.append(limiter.due(now))
        now += ROUND_SECONDS
    assert [len(found) for found in rounds] == [ROUND, ROUND, 300 - 2 * ROUND]
    assert [region for found in rounds for region, _ in found] == list(range(300))


def test_a_region_that_always_fails_is_acted_on_ten_times_a_second():
    limiter = RetryLimiter()
    done = 0
    for step in range(1000):
        now = step * 0.01
        done += limiter.admit(1, step, now) + len(limiter.due(now))
    assert 98 <= done <= 103


@given(times=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400)), max_size=80))
def test_never_more_than_three_and_one_per_100_ms_and_nothing_is_lost(times):
    limiter = RetryLimiter()
    now = 0
    acted = {}
    for number, (region, pause) in enumerate(times):
        now += pause
        if limiter.admit(region, (region, number), now / 1000):
            acted.setdefault(region, []).append((now, number))
        for other, earlier in limiter.due(now / 1000):
            acted.setdefault(other, []).append((now, earlier))
    while limiter.parked:
        now += 50
        for other, earlier in limiter.due(now / 1000):
            acted.setdefault(other, []).append((now, earlier))
    assert sorted(number for found in acted.values() for _, number in found) == list(range(len(times)))
    for found in acted.values():
        moments = [moment for moment, _ in found]
        for i, first in enumerate(moments):
            for j in range(i, len(moments)):
                assert j - i + 1 <= 3 + (moments[j] - first) / 100
