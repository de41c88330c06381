"""Growing pauses, with a time limit."""

from __future__ import annotations

from random import Random

from tidemill.actors import Backoff, ManualClock


def pauses(clock, *, total, least=0.0, passing=0.0):
    backoff = Backoff(clock, Random(1), first=1.0, longest=8.0, total=total)
    found = []
    while (pause := backoff.next(least)) is not None:
        found.append(pause)
        clock.advance(passing)
    return found


def test_pauses_double_up_to_the_longest_less_up_to_a_half_and_end_with_the_total():
    found = pauses(ManualClock(), total=40)
    wanted = [1, 2, 4, 8, 8, 8, 8, 8, 8]
    assert len(found) <= len(wanted)
    assert sum(found[:-1]) < 40 <= sum(found)
    assert all(most / 2 <= pause <= most for pause, most in zip(found, wanted, strict=False))


def test_time_that_passes_besides_counts_too():
    assert len(pauses(ManualClock(), total=40, passing=20)) == 2


def test_a_pause_is_never_under_the_least():
    assert pauses(ManualClock(), total=9, least=3)[0] == 3


def test_without_time_there_is_no_pause():
    assert pauses(ManualClock(), total=0) == []
