"""The timestamps of several sources: none is used by two, and after a restart they come again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemill.events import compose_ts
from tidemill.puller.lane import Lane, LoadBarrier
from tidemill.puller.mysql.commit_clock import CommitClock

SECONDS = st.integers(1000, 1004)


@given(st.integers(0, 1 << 40), st.integers(1, 7), st.data())
def test_rounding_finds_the_nearest_ts_of_the_lane(ts, count, data):
    lane = Lane(data.draw(st.integers(0, count - 1)), count)
    own = [near for near in range(ts - count, ts + count + 1) if near % count == lane.index]
    assert lane.at_most(ts) == max(one for one in own if one <= ts)
    assert lane.at_least(ts) == min(one for one in own if one >= ts)


@given(st.lists(st.lists(SECONDS, max_size=12), min_size=2, max_size=3), st.data())
def test_a_restart_from_any_merged_checkpoint_gives_the_same_timestamps(logs, data):
    def read(index, last=0, start=0):
        clock = CommitClock(last, lane=Lane(index, len(logs)))
        found = []
        for number, seconds in enumerate(logs[index][start:], start):
            clock.last = clock.next(seconds)
            found.append((clock.last, index, number))
        return found

    merged = sorted(one for index in range(len(logs)) for one in read(index))
    assert len({ts for ts, _, _ in merged}) == len(merged)
    cut = data.draw(st.integers(0, len(merged)))
    last = merged[cut - 1][0] if cut else 0
    starts = [sum(1 for _, index, _ in merged[:cut] if index == each) for each in range(len(logs))]
    again = sorted(one for index, start in enumerate(starts) for one in read(index, last, start))
    assert again == merged[cut:]


def test_an_idle_source_s_time_stays_below_the_next_second():
    for index in range(3):
        clock = CommitClock(lane=Lane(index, 3))
        assert clock.advance_watermark(compose_ts(1000 * 1000 - 1))
        assert clock.last >= compose_ts(1000 * 1000 - 1)
        assert not clock.advance_watermark(compose_ts(1000 * 1000 - 1))
        assert clock.next(1000) == CommitClock(lane=Lane(index, 3)).next(1000)


def test_the_barrier_opens_when_every_source_has_its_snapshot():
    barrier = LoadBarrier(2)
    barrier.loaded(Lane(0, 2), 10)
    barrier.loaded(Lane(0, 2), 12)
    assert not barrier.wait(0)
    barrier.loaded(Lane(1, 2), 11)
    assert barrier.wait(0)
    assert barrier.end == 12
