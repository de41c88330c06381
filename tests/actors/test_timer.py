"""Messages to oneself, later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tidemill.actors import PooledActor, Restart, SeededSystem, Stream, Timer

from .cast import Recorder, Supervisor


class Timed(PooledActor):
    """Runs what it is told; keeps the ticks with their times."""

    def __init__(self, ticks: list[Any]) -> None:
        self.ticks = ticks
        self.timers: list[Timer] = []

    def on_receive(self, message: Any) -> Any:
        if callable(message):
            return message(self)
        self.ticks.append((self.clock.now(), message))
        return None


class TimedBatch(Timed):
    def on_receive_batch(self, messages: Any) -> None:
        for message in messages:
            self.on_receive(message)


@pytest.fixture
def ticks() -> list[Any]:
    return []


@pytest.fixture(params=[Timed, TimedBatch])
def actor(request: pytest.FixtureRequest, seeded: SeededSystem, ticks: list[Any]) -> Any:
    return seeded.spawn(request.param, ticks, name="timed", capacity=4)


def do(actor: Any, what: Callable[[Timed], Any]) -> Any:
    return actor.ask(what)


def test_after_comes_once(seeded: SeededSystem, actor: Any, ticks: list[Any]) -> None:
    do(actor, lambda me: (me.after(3, "b"), me.after(1, "a"), None)[-1])
    seeded.run(seconds=10)
    assert ticks == [(1, "a"), (3, "b")]


def test_every_comes_at_each_period(seeded: SeededSystem, actor: Any, ticks: list[Any]) -> None:
    do(actor, lambda me: me.every(2.5, "tick"))
    seeded.run(seconds=10)
    assert ticks == [(2.5, "tick"), (5, "tick"), (7.5, "tick"), (10, "tick")]


def test_ticks_that_find_the_actor_busy_become_one_and_the_beat_stays(
    seeded: SeededSystem, actor: Any, ticks: list[Any]
) -> None:
    do(actor, lambda me: me.every(1, "tick"))
    seeded.clock.advance(3.5)  # nobody runs meanwhile
    seeded.run(seconds=1)
    assert ticks == [(3.5, "tick"), (4, "tick")]


def test_a_late_clock_skips_the_periods_it_missed(seeded: SeededSystem, actor: Any, ticks: list[Any]) -> None:
    do(actor, lambda me: me.every(1, "tick"))
    seeded.clock._now = 5.5  # as if the machine had slept
    seeded.run()
    seeded.run(seconds=2)
    assert ticks == [(5.5, "tick"), (6, "tick"), (7, "tick")]


def test_a_cancelled_timer_is_silent(seeded: SeededSystem, actor: Any, ticks: list[Any]) -> None:
    do(actor, lambda me: me.timers.extend([me.every(1, "tick"), me.after(2, "once")]))
    seeded.run(seconds=1)
    do(actor, lambda me: [timer.cancel() for timer in me.timers] and None)
    do(actor, lambda me: [timer.cancel() for timer in me.timers] and None)
    seeded.run(seconds=10)
    assert ticks == [(1, "tick")]


def test_a_timer_cancelled_while_its_tick_waits_in_the_mailbox_is_silent(
    seeded: SeededSystem, actor: Any, ticks: list[Any]
) -> None:
    do(actor, lambda me: me.timers.append(me.every(1, "tick")))
    cancelled = actor.ask(lambda me: me.timers[0].cancel(), block=False)
    seeded.clock.advance(1)
    cancelled.get()
    seeded.run(seconds=5)
    assert ticks == []


def test_a_tick_comes_through_although_the_mailbox_is_full(
    seeded: SeededSystem, actor: Any, ticks: list[Any]
) -> None:
    do(actor, lambda me: me.after(1, "tick"))
    for n in range(4):
        actor.try_tell(n)
    seeded.clock.advance(1)
    assert len(actor.actor_inbox.messages) == 5
    seeded.run()
    assert [message for _, message in ticks] == [0, 1, 2, 3, "tick"]


def test_after_zero_seconds_comes_next_without_a_clock(
    seeded: SeededSystem, actor: Any, ticks: list[Any]
) -> None:
    do(actor, lambda me: (me.after(0, "next"), None)[-1])
    seeded.run()
    assert ticks == [(0, "next")]
    assert not seeded.clock.jump()


@pytest.mark.parametrize(("kind", "seconds"), [("after", -1), ("every", 0), ("every", -1)])
def test_a_timer_needs_a_time_to_come(actor: Any, kind: str, seconds: float) -> None:
    with pytest.raises(ValueError, match="a timer of"):
        do(actor, lambda me: getattr(me, kind)(seconds, "never"))


def test_the_timers_of_a_stopped_actor_are_gone(seeded: SeededSystem, actor: Any) -> None:
    do(actor, lambda me: (me.every(1, "tick"), me.after(5, "once"), None)[-1])
    actor.stop()
    assert not seeded.clock.jump()


def test_the_timers_of_a_failed_actor_are_gone_and_its_successor_sets_its_own(seeded: SeededSystem) -> None:
    heard: list[Any] = []

    class Beating(Recorder):
        def on_start(self) -> None:
            heard.append("start")
            self.every(2, "tick")

    ref = seeded.spawn(
        Beating, heard, supervisor=seeded.spawn(Supervisor, []), restart=Restart(first_seconds=1)
    )
    seeded.run(seconds=2)
    ref.tell("boom")
    seeded.clock.advance(0)
    seeded.run(seconds=4)
    assert heard == ["start", "tick", "boom", "failure", "start", "tick"]


def test_a_tick_waits_behind_an_outbox_like_any_message(seeded: SeededSystem) -> None:
    stream: Stream[str] = Stream(1)

    class Pacing(PooledActor):
        def on_start(self) -> None:
            self.every(1, "tick")

        def on_receive(self, message: str) -> None:
            self.send(stream, message)

    seeded.spawn(Pacing)
    seeded.run(seconds=10)
    [figures] = seeded.statistics().actors
    assert (figures.delivered, figures.outbox, figures.depth) == (2, 1, 1)
    stream.close()
