"""Full mailboxes, for those who tell."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tidemill.actors import MailboxFull, PooledActor, PooledRef, SeededSystem, Stream

from .cast import BatchRecorder, Forwarder, Recorder, messages


def test_try_tell_to_a_full_mailbox_raises_and_names_it(seeded: SeededSystem) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(Recorder, heard, capacity=2, name="small")
    ref.try_tell("a")
    ref.try_tell("b")
    with pytest.raises(MailboxFull, match=r"mailbox of small is full \(2\)"):
        ref.try_tell("c")
    seeded.run()
    assert messages(heard) == ["a", "b"]


def test_a_tell_from_outside_waits_for_room(seeded: SeededSystem) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(Recorder, heard, capacity=1)
    for n in range(10):
        ref.tell(n)
    seeded.run()
    assert messages(heard) == list(range(10))


def test_a_tell_gives_up_after_its_timeout_and_the_message_is_not_delivered(seeded: SeededSystem) -> None:
    stream: Stream[Any] = Stream(1)
    ref = seeded.spawn(Forwarder, stream, capacity=1)
    accepted = 0

    def fill() -> None:
        nonlocal accepted
        while True:
            ref.tell("x", timeout=3.0)
            accepted += 1

    with pytest.raises(MailboxFull):
        fill()
    assert seeded.clock.now() == 3.0
    stream.close()
    seeded.run()
    [figures] = seeded.statistics().actors
    assert figures.delivered == figures.received == accepted


def test_tell_many_larger_than_the_mailbox_arrives_in_order(seeded: SeededSystem) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(BatchRecorder, heard, capacity=3)
    ref.tell_many([])
    ref.tell_many(range(10))
    ref.tell_many([10, 11])
    seeded.run()
    assert messages(heard) == list(range(12))


class Teller(PooledActor):
    """Tells where it should send; the answer is what went wrong."""

    def __init__(self, target: PooledRef[Any]) -> None:
        self.target = target

    def on_receive(self, how: str) -> str:
        try:
            match how:
                case "tell":
                    self.target.tell("x")
                    self.target.tell("x")
                case "tell_many":
                    self.target.tell_many(["x", "x"])
                case "ask":
                    self.target.ask("x")
                case "ask later":
                    self.target.ask("x", block=False)
                    self.target.ask("x", block=False)
                case "stop":
                    self.target.stop()
                case "stop later":
                    self.target.stop(block=False)
                case "stop system":
                    self.system.stop()
        except (MailboxFull, RuntimeError) as error:
            return f"{type(error).__name__}: {error}"
        return "done"


@pytest.mark.parametrize(
    ("how", "answer"),
    [
        ("tell", r"MailboxFull: the mailbox of full is full \(1\); an actor .* use self.send"),
        ("tell_many", "MailboxFull: .* use self.send"),
        ("ask", "RuntimeError: ask of full would block an actor's worker: use block=False"),
        ("ask later", "MailboxFull: .* use self.send"),
        ("stop", "RuntimeError: stop of full would block"),
        ("stop later", "done"),
        ("stop system", "RuntimeError: stop of the system seeded in an actor's turn"),
    ],
)
def test_an_actor_in_its_turn_is_told_instead_of_blocked(seeded: SeededSystem, how: str, answer: str) -> None:
    target = seeded.spawn(Recorder, [], capacity=1, name="full")
    teller = seeded.spawn(Teller, target)
    reply = teller.ask(how)
    assert re.match(answer, reply), reply


def test_who_claims_an_actor_at_rest_has_its_turn(seeded: SeededSystem) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(Recorder, heard, name="resting")
    process = ref.actor_inbox
    assert not process.claim()  # it has not started
    seeded.run()
    assert process.claim()
    assert not process.claim()
    ref.tell("meanwhile")
    seeded.run()
    assert messages(heard) == []
    process.release()
    seeded.run()
    assert messages(heard) == ["meanwhile"]
    ref.stop(block=False)
    assert not process.claim()
    seeded.run()
