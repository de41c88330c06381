"""Messages to an actor without room: backpressure, and cycles of it."""

from __future__ import annotations

from typing import Any

from tidemill.actors import DeadlockError, Failed, PooledActor, PooledRef, SeededSystem, Stream

from .cast import Forwarder, Recorder, Supervisor, messages


def test_an_actor_gets_no_messages_while_its_outbox_waits(seeded: SeededSystem) -> None:
    stream: Stream[Any] = Stream(2, name="slow")
    sender = seeded.spawn(Forwarder, stream, capacity=4, name="sender")
    sender.tell_many([1, 2, 3, 4])
    seeded.clock.advance(7.0)
    seeded.run()
    [figures] = seeded.statistics().actors
    assert (figures.waiting_on, figures.since, figures.outbox) == ("slow", 7.0, 1)
    assert (figures.delivered, figures.received) == (3, 4)
    assert [(w.name, w.depth, w.waiting_on) for w in stream.statistics().waiting] == [("sender", 0, "slow")]
    assert stream.statistics().depth == 2
    stream.close()
    seeded.run()
    [figures] = seeded.statistics().actors
    assert (figures.waiting_on, figures.since, figures.outbox) == (None, None, 0)
    assert (figures.delivered, figures.undelivered) == (4, 2)


def test_backpressure_reaches_through_a_chain_to_the_one_outside(seeded: SeededSystem) -> None:
    stream: Stream[Any] = Stream(1)
    ref = seeded.spawn(Forwarder, stream, capacity=1)
    for _ in range(3):
        ref = seeded.spawn(Forwarder, ref, capacity=1)
    accepted = 0
    while ref.offer(accepted):
        accepted += 1
        seeded.run()
    # one in the stream, and for each of four actors one in its outbox and one in its mailbox
    assert accepted == 1 + 4 * 2
    assert all(figures.waiting_on for figures in seeded.statistics().actors)
    stream.close()


def test_messages_behind_one_that_waits_keep_their_order_to_every_target(seeded: SeededSystem) -> None:
    first: list[Any] = []
    second: list[Any] = []
    targets = [seeded.spawn(Recorder, heard, capacity=1) for heard in (first, second)]
    sender = seeded.spawn(Forwarder, *targets, copies=3)
    sender.tell_many([1, 2, 3])
    seeded.run()
    assert messages(first) == messages(second) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_what_goes_to_a_stopped_actor_is_counted_and_the_rest_arrives(seeded: SeededSystem) -> None:
    heard: list[Any] = []
    gone, there = seeded.spawn(Recorder, []), seeded.spawn(Recorder, heard)
    sender = seeded.spawn(Forwarder, gone, there, copies=2, name="sender")
    gone.stop()
    sender.tell_many([1, 2])
    seeded.run()
    assert messages(heard) == [1, 1, 2, 2]
    [figures] = [figures for figures in seeded.statistics().actors if figures.name == "sender"]
    assert figures.undelivered == 4
    sender.stop()
    assert seeded.statistics().totals.undelivered == 4


def ring(seeded: SeededSystem, size: int, reports: list[Failed]) -> list[PooledRef[Forwarder]]:
    boss = seeded.spawn(Supervisor, reports)
    actors = [
        seeded.spawn(Forwarder, copies=2, capacity=3, name=f"ring-{n}", supervisor=boss) for n in range(size)
    ]
    for ref, following in zip(actors, actors[1:] + actors[:1], strict=True):
        ref.tell(("targets", following))
    return actors


def test_a_circle_of_full_mailboxes_is_named_and_broken(seeded: SeededSystem) -> None:
    reports: list[Failed] = []
    actors = ring(seeded, 3, reports)
    actors[0].tell("grows")
    seeded.run()
    [report] = reports
    error = report.error
    assert isinstance(error, DeadlockError)
    assert error.cycle[0].name == report.name
    assert {waiting.name: waiting.waiting_on for waiting in error.cycle} == {
        "ring-0": "ring-1",
        "ring-1": "ring-2",
        "ring-2": "ring-0",
    }
    assert "ring-0 (3/3) waits on ring-1 since 0.000" in str(error)
    assert sum(ref.is_alive() for ref in actors) == 2
    assert seeded.statistics().waiting == ()


def test_an_actor_that_fills_its_own_mailbox_is_a_circle_of_one(seeded: SeededSystem) -> None:
    class Narcissus(PooledActor):
        def on_receive(self, message: Any) -> None:
            for _ in range(3):
                self.send(self.actor_ref, message)

    reports: list[Failed] = []
    boss = seeded.spawn(Supervisor, reports)
    seeded.spawn(Narcissus, capacity=2, supervisor=boss, name="pool").tell("look")
    seeded.run()
    assert "pool (2/2) waits on pool" in str(reports[0].error)


def test_waiting_on_somebody_in_a_circle_is_not_being_in_it(seeded: SeededSystem) -> None:
    stream: Stream[Any] = Stream(1)
    reports: list[Failed] = []
    boss = seeded.spawn(Supervisor, reports)
    last = seeded.spawn(Forwarder, stream, capacity=1, supervisor=boss)
    for _ in range(5):
        seeded.spawn(Forwarder, last, capacity=8, supervisor=boss).tell_many(range(8))
    seeded.run()
    assert len(seeded.statistics().waiting) == 5
    stream.close()
    seeded.run()
    assert reports == []
