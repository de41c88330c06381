"""Statistics of an actor system."""

from __future__ import annotations

import threading
from typing import Any

from tidemill.actors import ActorSystem, Restart, SeededSystem, Stream

from .cast import Forwarder, Recorder, Supervisor


def test_each_actor_has_its_figures(seeded: SeededSystem) -> None:
    ref = seeded.spawn(Recorder, [], name="worker", capacity=7)
    ref.tell_many(["a", "b"])
    [figures] = seeded.statistics().actors
    assert (figures.name, figures.state, figures.depth, figures.capacity) == ("worker", "starting", 2, 7)
    assert (figures.received, figures.delivered, figures.polls) == (2, 0, 0)
    seeded.run()
    [figures] = seeded.statistics().actors
    assert (figures.state, figures.depth) == ("running", 0)
    assert (figures.received, figures.delivered, figures.failed, figures.dropped) == (2, 2, 0, 0)
    assert figures.polls >= 2


def test_a_system_has_its_name_its_workers_and_its_actors_in_the_order_spawned(threads: ActorSystem) -> None:
    for name in ("b", "a", "c"):
        threads.spawn(Recorder, [], name=name)
    statistics = threads.statistics()
    assert (statistics.name, statistics.workers) == ("test", 2)
    assert [figures.name for figures in statistics.actors] == ["b", "a", "c"]


def test_totals_outlive_their_actors(seeded: SeededSystem, caplog: Any) -> None:
    ref = seeded.spawn(Recorder, [])
    ref.tell_many(["boom", "left", "left"])
    seeded.run()
    assert not ref.is_alive()
    totals = seeded.statistics().totals
    assert (totals.failed, totals.dropped, totals.undelivered) == (1, 2, 0)
    assert len(caplog.records) == 1


def test_a_thread_that_waits_for_room_is_listed_with_what_it_waits_on(threads: ActorSystem) -> None:
    stream: Stream[Any] = Stream(1)
    target = threads.spawn(Forwarder, stream, capacity=1, name="target")
    blocked = threading.Thread(target=lambda: [target.tell(n) for n in range(5)], name="teller")
    blocked.start()
    while not (waiting := threads.statistics().waiting):
        pass
    assert [(entry.name, entry.waiting_on) for entry in waiting] == [("thread teller", "target")]
    assert 0 <= waiting[0].since <= threads.clock.now()
    stream.close()
    blocked.join()
    assert threads.statistics().waiting == ()


def test_an_actor_in_its_turn_says_since_when(threads: ActorSystem) -> None:
    entered, release = threading.Event(), threading.Event()

    class Driver(Recorder):
        def on_receive(self, message: Any) -> None:
            entered.set()
            release.wait()

    before = threads.clock.now()
    ref = threads.spawn(Driver, [])
    ref.tell("block")
    entered.wait()
    [figures] = threads.statistics().actors
    assert figures.turn_since is not None
    assert before <= figures.turn_since <= threads.clock.now()
    release.set()
    ref.stop()
    threads.spawn(Recorder, []).ask("a")
    while threads.statistics().actors[0].turn_since is not None:
        pass


def test_an_actor_that_pauses_waits_on_its_restart(seeded: SeededSystem) -> None:
    boss = seeded.spawn(Supervisor, [])
    seeded.clock.advance(3)
    seeded.spawn(Recorder, [], supervisor=boss, restart=Restart(first_seconds=5)).tell("boom")
    seeded.run()
    figures = seeded.statistics().actors[1]
    assert (figures.state, figures.waiting_on, figures.since) == ("pausing", "restart", 3)
    assert figures.turn_since is None
