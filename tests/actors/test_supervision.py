"""Actors that fail."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tidemill.actors import Failed, PooledActor, Restart, SeededSystem, Stream

from .cast import BatchRecorder, Forwarder, Recorder, Supervisor, messages


@pytest.fixture
def reports() -> list[Failed]:
    return []


@pytest.fixture
def boss(seeded: SeededSystem, reports: list[Failed]) -> Any:
    return seeded.spawn(Supervisor, reports)


def test_a_failure_reaches_the_supervisor_with_the_message_and_the_error(
    seeded: SeededSystem, boss: Any, reports: list[Failed]
) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(Recorder, heard, name="worker", supervisor=boss)
    ref.tell_many(["a", "boom", "never"])
    seeded.run()
    [report] = reports
    assert (report.ref, report.name, report.message, report.restart_seconds) == (ref, "worker", "boom", None)
    assert str(report.error) == "boom"
    assert report.error.__traceback__ is not None
    assert heard == ["start", "a", "boom", "failure"]
    assert not ref.is_alive()
    assert seeded.statistics().totals.dropped == 1


def test_a_failed_batch_is_reported_whole(seeded: SeededSystem, boss: Any, reports: list[Failed]) -> None:
    seeded.spawn(BatchRecorder, [], supervisor=boss).tell("boom")
    seeded.run()
    assert reports[0].message == ["boom"]


def test_without_a_supervisor_a_failure_is_logged(
    seeded: SeededSystem, caplog: pytest.LogCaptureFixture
) -> None:
    seeded.spawn(Recorder, [], name="orphan").tell("boom")
    seeded.run()
    [record] = caplog.records
    assert (record.name, record.levelno) == ("tidemill.actors", logging.ERROR)
    assert "orphan failed" in record.getMessage()
    assert record.exc_info


def test_a_report_to_a_stopped_supervisor_is_logged(
    seeded: SeededSystem, boss: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ref = seeded.spawn(Recorder, [], supervisor=boss)
    boss.stop()
    ref.tell("boom")
    seeded.run()
    assert len(caplog.records) == 1


def test_reports_get_through_to_a_supervisor_whose_mailbox_is_full(seeded: SeededSystem) -> None:
    stream: Stream[Any] = Stream(1)
    boss = seeded.spawn(Forwarder, stream, capacity=1)
    while boss.offer("filler"):
        seeded.run()
    for _ in range(3):
        seeded.spawn(Recorder, [], supervisor=boss).tell("boom")
    seeded.run()
    assert len(boss.actor_inbox.messages) == 4
    stream.close()


def test_a_restart_makes_a_new_instance_after_pauses_that_grow(
    seeded: SeededSystem, boss: Any, reports: list[Failed]
) -> None:
    starts: list[float] = []

    class Unlucky(Recorder):
        def on_start(self) -> None:
            starts.append(self.clock.now())

    restart = Restart(first_seconds=1, factor=3, max_seconds=5)
    ref = seeded.spawn(Unlucky, [], supervisor=boss, restart=restart)
    for _ in range(4):
        ref.tell("boom")
    seeded.run(seconds=100)
    assert starts == [0, 1, 4, 9, 14]
    assert [report.restart_seconds for report in reports] == [1, 3, 5, 5]
    assert ref.ask("a") == ("heard", "a")


def test_a_time_without_failures_ends_the_row(seeded: SeededSystem, boss: Any, reports: list[Failed]) -> None:
    restart = Restart(first_seconds=1, healthy_seconds=10)
    ref = seeded.spawn(Recorder, [], supervisor=boss, restart=restart)
    for seconds in (5, 20, 20):
        ref.tell("boom")
        seeded.run(seconds)
    assert [report.restart_seconds for report in reports] == [1, 2, 1]


def test_so_many_restarts_and_no_more(seeded: SeededSystem, boss: Any, reports: list[Failed]) -> None:
    ref = seeded.spawn(Recorder, [], supervisor=boss, restart=Restart(max_restarts=2))
    ref.tell_many(["boom"] * 5)
    seeded.run(seconds=100)
    assert [report.restart_seconds for report in reports] == [0.1, 0.2, None]
    assert not ref.is_alive()


def test_only_errors_that_a_restart_may_cure_are_restarted(
    seeded: SeededSystem, boss: Any, reports: list[Failed]
) -> None:
    ref = seeded.spawn(Recorder, [], supervisor=boss, restart=Restart(errors=(OSError,)))
    ref.tell("boom")
    seeded.run(seconds=10)
    assert [report.restart_seconds for report in reports] == [None]


def test_messages_wait_during_the_pause_and_come_to_the_new_instance(seeded: SeededSystem, boss: Any) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(Recorder, heard, supervisor=boss, restart=Restart(first_seconds=5))
    ref.tell_many(["a", "boom", "b"])
    seeded.run()
    ref.tell("c")
    assert [figures.state for figures in seeded.statistics().actors] == ["running", "pausing"]
    assert heard == ["start", "a", "boom", "failure"]
    seeded.run(seconds=5)
    assert heard[4:] == ["start", "b", "c"]


def test_an_actor_that_pauses_can_be_stopped(seeded: SeededSystem, boss: Any) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(Recorder, heard, supervisor=boss, restart=Restart(first_seconds=5))
    ref.tell_many(["boom", "left"])
    answer = ref.ask("left", block=False)
    seeded.run()
    assert ref.stop() is True
    assert seeded.clock.now() == 0
    assert heard == ["start", "boom", "failure"]
    with pytest.raises(Exception, match="stopped before"):
        answer.get()
    assert seeded.statistics().totals.dropped == 2


def test_on_start_may_fail_and_be_tried_again(seeded: SeededSystem, boss: Any, reports: list[Failed]) -> None:
    attempts: list[float] = []

    class Late(PooledActor):
        def on_start(self) -> None:
            attempts.append(self.clock.now())
            if len(attempts) < 3:
                raise OSError("not yet")

        def on_receive(self, message: Any) -> Any:
            return len(attempts)

    ref = seeded.spawn(Late, supervisor=boss, restart=Restart(first_seconds=1))
    assert ref.ask("?") == 3
    assert attempts == [0, 1, 3]
    assert [report.message for report in reports] == [None, None]


def test_a_constructor_may_fail_in_a_restart_and_be_tried_again(seeded: SeededSystem, boss: Any) -> None:
    made: list[int] = []

    class Fragile(Recorder):
        def __init__(self, heard: list[Any]) -> None:
            super().__init__(heard)
            made.append(1)
            if len(made) == 2:
                raise OSError("in the restart")

    ref = seeded.spawn(Fragile, [], supervisor=boss, restart=Restart())
    ref.tell("boom")
    assert ref.ask("a") == ("heard", "a")
    assert len(made) == 3


def test_what_was_sent_before_a_failure_is_delivered(seeded: SeededSystem, boss: Any) -> None:
    class Dying(Forwarder):
        def on_receive(self, message: Any) -> None:
            super().on_receive(message)
            raise ValueError("after sending")

        def on_failure(self, *exc_info: Any) -> None:
            self.send(self.targets[0], "last words")

    heard: list[Any] = []
    target = seeded.spawn(Recorder, heard, capacity=1)
    seeded.spawn(Dying, target, copies=5, supervisor=boss).tell("x")
    seeded.run()
    assert messages(heard) == ["x"] * 5 + ["last words"]


def test_errors_in_on_failure_and_on_stop_are_reported_and_end_nothing_else(
    seeded: SeededSystem, boss: Any, reports: list[Failed], caplog: pytest.LogCaptureFixture
) -> None:
    class Clumsy(Recorder):
        def on_failure(self, *exc_info: Any) -> None:
            raise RuntimeError("in on_failure")

        def on_stop(self) -> None:
            raise RuntimeError("in on_stop")

    seeded.spawn(Clumsy, [], supervisor=boss).tell("boom")
    seeded.run()
    assert "on_failure raised" in caplog.text
    assert seeded.spawn(Clumsy, [], supervisor=boss).stop() is True
    seeded.run()
    assert [str(report.error) for report in reports] == ["boom", "in on_stop"]
