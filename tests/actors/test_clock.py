"""Clocks and their alarms."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.actors import ManualClock, SystemClock


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(10.0, epoch=1000.0)
    assert (clock.now(), clock.time()) == (10.0, 1000.0)
    clock.advance(2.5)
    assert (clock.now(), clock.time()) == (12.5, 1002.5)


def test_calls_are_made_at_their_own_moment_in_order() -> None:
    clock = ManualClock()
    calls: list[Any] = []
    for when in (3, 1, 2, 1):
        clock.call_at(when, lambda when=when: calls.append((when, clock.now())))
    clock.advance(2)
    assert calls == [(1, 1), (1, 1), (2, 2)]
    assert clock.now() == 2
    assert clock.jump()
    assert calls[3:] == [(3, 3)]
    assert not clock.jump()


def test_a_jump_goes_no_further_than_allowed() -> None:
    clock = ManualClock()
    clock.call_at(5, lambda: None)
    assert not clock.jump(until=4)
    assert clock.now() == 0


def test_a_call_that_is_due_already_is_made_without_going_back() -> None:
    clock = ManualClock(10.0)
    clock.call_at(3, lambda: None)
    clock.advance(0)
    assert clock.now() == 10


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60))
@settings(deadline=None)
def test_exactly_the_alarms_not_cancelled_ring_in_order(alarms: list[tuple[int, bool]]) -> None:
    clock = ManualClock()
    rung: list[int] = []
    set_alarms = [
        (clock.call_at(when, lambda number=number: rung.append(number)), cancelled)
        for number, (when, cancelled) in enumerate(alarms)
    ]
    for alarm, cancelled in set_alarms:
        if cancelled:
            assert alarm.cancel()
            assert not alarm.cancel()
    clock.advance(20)
    kept = [number for number, (_, cancelled) in enumerate(alarms) if not cancelled]
    assert rung == sorted(kept, key=lambda number: alarms[number][0])
    assert not any(alarm.cancel() for alarm, _ in set_alarms)
    assert len(clock._alarms._heap) == 0


def test_the_system_clock_calls_in_order_in_its_own_thread_which_then_ends() -> None:
    clock = SystemClock()
    assert abs(clock.time() - time.time()) < 60
    calls: list[int] = []
    threads: list[threading.Thread] = []
    set_all, done = threading.Event(), threading.Event()
    start = clock.now()

    def last() -> None:
        threads.append(threading.current_thread())
        done.set()

    clock.call_at(start - 1, set_all.wait)
    clock.call_at(start + 0.02, last)
    clock.call_at(start + 0.01, lambda: calls.append(2))
    clock.call_at(start, lambda: calls.append(1))
    never = clock.call_at(start + 0.015, lambda: calls.append(0))
    assert never.cancel()
    set_all.set()
    done.wait()
    assert calls == [1, 2]
    assert clock.now() >= start + 0.02
    threads[0].join()
    assert threads[0].name == "tidemill-clock"


def test_cancelling_the_last_alarm_ends_the_system_clocks_thread() -> None:
    clock = SystemClock()
    alarm = clock.call_at(clock.now() + 3600, lambda: None)
    [thread] = [thread for thread in threading.enumerate() if thread.name == "tidemill-clock"]
    assert alarm.cancel()
    thread.join()


def test_a_call_that_raises_does_not_silence_the_others(caplog: pytest.LogCaptureFixture) -> None:
    clock = SystemClock()
    done = threading.Event()
    clock.call_at(clock.now(), lambda: [][0])
    clock.call_at(clock.now(), done.set)
    done.wait()
    assert "a call made by the clock raised" in caplog.text
