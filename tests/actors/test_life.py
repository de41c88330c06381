"""From spawn to stop."""

from __future__ import annotations

import threading
from typing import Any

import pykka
import pytest

from tidemill.actors import ActorSystem, PooledActor, SeededSystem
from tidemill.actors.process import Process

from .cast import Forwarder, Recorder, messages


def test_an_actor_starts_once_before_its_first_message_and_stops_once_after_its_last(
    seeded: SeededSystem,
) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(Recorder, heard)
    ref.tell_many(["a", "b"])
    assert ref.stop() is True
    assert heard == ["start", "a", "b", "stop"]
    assert ref.stop() is False
    assert heard.count("stop") == 1


def test_a_stopped_actor_refuses_every_kind_of_message(seeded: SeededSystem) -> None:
    ref = seeded.spawn(Recorder, [])
    ref.stop()
    assert not ref.is_alive()
    assert ref.actor_stopped.is_set()
    for refused in (
        lambda: ref.tell("late"),
        lambda: ref.try_tell("late"),
        lambda: ref.tell_many(["late"]),
        lambda: ref.ask("late"),
        lambda: ref.ask("late", block=False).get(),
    ):
        with pytest.raises(pykka.ActorDeadError):
            refused()


def test_an_actor_that_is_asked_to_stop_refuses_at_once_and_delivers_what_it_accepted(
    seeded: SeededSystem,
) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(Recorder, heard)
    ref.tell("accepted")
    stopping = ref.stop(block=False)
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("late")
    assert stopping.get() is True
    assert messages(heard) == ["accepted"]


def test_a_message_accepted_in_the_last_moment_before_a_stop_is_delivered(
    seeded: SeededSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []
    last = seeded.spawn(Recorder, heard, capacity=1)
    ref = seeded.spawn(Forwarder, last, copies=3)
    take = Process.take

    def take_and_be_interrupted(self: Process, count: int) -> list[Any]:
        taken = take(self, count)
        if self is ref.actor_inbox and not taken and ref.is_alive():
            ref.tell("last")
            ref.stop(block=False)
        return taken

    monkeypatch.setattr(Process, "take", take_and_be_interrupted)
    ref.tell("first")  # its copies don't fit, so the actor comes back later with nothing to take
    seeded.run()
    assert not ref.is_alive()
    assert messages(heard) == ["first"] * 3 + ["last"] * 3


def test_an_actor_can_stop_itself(seeded: SeededSystem) -> None:
    class OneShot(Recorder):
        def on_receive(self, message: Any) -> None:
            self.heard.append(message)
            self.stop()

    heard: list[Any] = []
    ref = seeded.spawn(OneShot, heard)
    ref.tell_many([1, 2])
    seeded.run()
    assert heard == ["start", 1, 2, "stop"]
    assert not ref.is_alive()


def test_what_an_actor_sends_while_it_stops_still_goes_out(seeded: SeededSystem) -> None:
    class Farewell(Forwarder):
        def on_stop(self) -> None:
            for n in range(5):
                self.send(self.targets[0], n)

    heard: list[Any] = []
    last = seeded.spawn(Recorder, heard, capacity=1)
    seeded.spawn(Farewell, last).stop()
    seeded.run()
    assert messages(heard) == [0, 1, 2, 3, 4]


def test_a_system_stops_the_last_spawned_first_so_that_a_pipeline_drains_whole(seeded: SeededSystem) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(Recorder, heard, capacity=2)
    for _ in range(5):
        ref = seeded.spawn(Forwarder, ref, capacity=2)
    for n in range(20):
        ref.tell(n)
    seeded.stop()
    assert heard == ["start", *range(20), "stop"]
    assert seeded.statistics().actors == ()


def test_a_stopped_system_takes_no_new_actors(seeded: SeededSystem) -> None:
    seeded.stop()
    with pytest.raises(RuntimeError, match="seeded is stopped"):
        seeded.spawn(Recorder, [])


def test_stop_can_be_called_again(threads: ActorSystem) -> None:
    threads.spawn(Recorder, [])
    threads.stop()
    threads.stop()


def test_leaving_the_context_stops_the_actors_and_the_threads() -> None:
    heard: list[Any] = []
    with ActorSystem("short", workers=3) as system:
        system.spawn(Recorder, heard).tell("a")
    assert heard == ["start", "a", "stop"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("short-")]


def test_an_actor_that_never_returns_is_named_when_the_system_stops() -> None:
    release = threading.Event()
    entered = threading.Event()

    class Stubborn(PooledActor):
        def on_receive(self, message: Any) -> None:
            entered.set()
            release.wait()

    system = ActorSystem("test")
    system.spawn(Stubborn, name="mule").tell("go")
    entered.wait()
    with pytest.raises(pykka.Timeout, match="still busy: mule"):
        system.stop(timeout=0)
    release.set()
    system.stop()


def test_a_name_belongs_to_one_actor_at_a_time(seeded: SeededSystem) -> None:
    first = seeded.spawn(Recorder, [], name="writer")
    with pytest.raises(ValueError, match="'writer' exists"):
        seeded.spawn(Recorder, [], name="writer")
    first.stop()
    assert seeded.spawn(Recorder, [], name="writer").name == "writer"


def test_actors_without_a_name_get_one_from_their_class(seeded: SeededSystem) -> None:
    assert [seeded.spawn(Recorder, []).name for _ in range(2)] == ["Recorder-1", "Recorder-2"]


def test_an_actor_whose_constructor_raises_is_not_there(seeded: SeededSystem) -> None:
    with pytest.raises(TypeError):
        seeded.spawn(Recorder, name="broken")
    assert seeded.statistics().actors == ()
    seeded.spawn(Recorder, [], name="broken")


def test_a_ref_that_left_a_constructor_that_raised_refuses_messages(seeded: SeededSystem) -> None:
    leaked: list[Any] = []

    class Leaky(PooledActor):
        def __init__(self) -> None:
            leaked.append(self.actor_ref)
            self.every(1, "tick")
            leaked.append(self.actor_ref.ask("too early", block=False))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        seeded.spawn(Leaky)
    ref, answer = leaked
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("late")
    with pytest.raises(pykka.ActorDeadError):
        answer.get()
    assert not seeded.clock.jump()


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_mailbox_holds_at_least_one_message(seeded: SeededSystem, capacity: int) -> None:
    with pytest.raises(ValueError, match="capacity of small"):
        seeded.spawn(Recorder, [], capacity=capacity, name="small")


def test_a_system_has_at_least_one_worker() -> None:
    with pytest.raises(ValueError, match="workers of none"):
        ActorSystem("none", workers=0)


def test_an_actor_knows_its_name_its_system_its_clock_and_itself(seeded: SeededSystem) -> None:
    class Curious(PooledActor):
        def __init__(self) -> None:
            self.known = (self.name, self.system, self.clock, self.actor_ref)

        def on_receive(self, message: Any) -> Any:
            return self.known

    ref = seeded.spawn(Curious, name="me")
    assert ref.ask("?") == ("me", seeded, seeded.clock, ref)


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_whatever_an_actor_raises_its_worker_lives_on(
    seeded: SeededSystem, kind: type[BaseException]
) -> None:
    class Leaving(PooledActor):
        def on_receive(self, message: Any) -> None:
            raise kind

    class LeavingByBatch(Leaving):
        def on_receive_batch(self, messages: Any) -> None:
            raise kind

    class LeavingAtStart(PooledActor):
        def on_start(self) -> None:
            raise kind

    class LeavingAtStop(PooledActor):
        def on_stop(self) -> None:
            raise kind

    for actor_class in (Leaving, LeavingByBatch):
        with pytest.raises(kind):
            seeded.spawn(actor_class).ask("leave")
        seeded.spawn(actor_class).tell("leave")
    seeded.spawn(LeavingAtStart)
    seeded.spawn(LeavingAtStop).stop()
    assert seeded.spawn(Recorder, []).ask("still here") == ("heard", "still here")
    seeded.run()
    assert seeded.statistics().totals.failed == 4
