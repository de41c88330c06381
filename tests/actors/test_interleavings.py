"""The invariants, on the real code with real threads, under many seeded interleavings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pykka
import pytest

from tidemill.actors import (
    ActorSystem,
    DeadlockError,
    Failed,
    MailboxFull,
    ManualClock,
    PooledActor,
    PooledRef,
    Restart,
    Stream,
    SystemClock,
)

from .cast import BatchRecorder, Forwarder, Recorder, Supervisor, messages
from .explorer import Explorer, explore

BOTH = pytest.mark.parametrize("recorder", [Recorder, BatchRecorder])


def small_system() -> ActorSystem:
    return ActorSystem("test", workers=2, clock=ManualClock())


def all_of(explorer: Explorer, *bodies: Callable[[], object]) -> None:
    for thread in [explorer.thread(body) for body in bodies]:
        thread.join()


def assert_in_order(told: list[tuple[str, int]], sender: str, numbers: list[int]) -> None:
    assert [number for name, number in told if name == sender] == numbers


@BOTH
def test_tells_of_many_threads_arrive_once_each_in_order_and_one_turn_at_a_time(
    recorder: type[Recorder],
) -> None:
    def scenario(explorer: Explorer) -> None:
        heard: list[Any] = []
        system = small_system()
        ref = system.spawn(recorder, heard, explorer.pause, capacity=2)
        all_of(
            explorer,
            lambda: [ref.tell(("a", n)) for n in range(5)],
            lambda: [ref.tell(("b", n)) for n in range(5)],
            lambda: ref.tell_many([("c", n) for n in range(5)]),
        )
        system.stop()
        for sender in "abc":
            assert_in_order(messages(heard), sender, list(range(5)))
        assert heard.count("stop") == 1
        assert heard[-1] == "stop"
        assert "failure" not in heard

    explore(scenario)


def test_no_mailbox_holds_more_than_its_capacity() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        heard: list[Any] = []
        ref = system.spawn(Recorder, heard, explorer.pause, capacity=2)
        deepest = 0

        def send(name: str) -> None:
            nonlocal deepest
            for n in range(4):
                ref.tell((name, n))
                deepest = max(deepest, len(ref.actor_inbox.messages))

        all_of(explorer, lambda: send("a"), lambda: send("b"), lambda: ref.tell_many(["c"] * 5))
        system.stop()
        assert 1 <= deepest <= 2
        assert len(messages(heard)) == 13

    explore(scenario)


def test_a_message_is_delivered_exactly_if_it_was_accepted_while_the_actor_stops() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        heard: list[Any] = []
        accepted: list[Any] = []
        ref = system.spawn(Recorder, heard, capacity=1)

        def send(name: str, put: Callable[[Any], None]) -> None:
            for n in range(4):
                try:
                    put((name, n))
                except MailboxFull:
                    continue
                except pykka.ActorDeadError:
                    return
                accepted.append((name, n))

        all_of(
            explorer,
            lambda: send("a", ref.tell),
            lambda: send("b", ref.try_tell),
            lambda: send("c", lambda message: ref.tell(message, timeout=1.0)),
            lambda: ref.stop(),
        )
        system.stop()
        assert sorted(messages(heard)) == sorted(accepted)
        assert heard.count("stop") == 1
        with pytest.raises(pykka.ActorDeadError):
            ref.tell("late")

    explore(scenario)


def test_a_tell_many_that_runs_out_of_time_says_how_many_were_taken() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        heard: list[Any] = []
        ref = system.spawn(BatchRecorder, heard, explorer.pause, capacity=2)
        taken: list[int] = []

        def send(name: str) -> None:
            try:
                ref.tell_many([(name, n) for n in range(6)], timeout=1.0)
                taken.append(6)
            except MailboxFull as full:
                taken.append(full.accepted)

        all_of(explorer, lambda: send("a"), lambda: send("b"))
        system.stop()
        assert len(messages(heard)) == sum(taken)

    explore(scenario)


def test_every_ask_is_answered_exactly_once_while_the_actor_stops() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        heard: list[Any] = []
        ref = system.spawn(Recorder, heard, capacity=1)
        answers: list[tuple[Any, Any]] = []

        def ask(question: Any) -> None:
            try:
                answer = ref.ask(question)
            except (pykka.ActorDeadError, ValueError) as error:
                answer = type(error)
            answers.append((question, answer))

        all_of(
            explorer,
            lambda: [ask(n) for n in range(3)],
            lambda: ask("boom"),
            lambda: ref.stop(),
        )
        system.stop()
        assert len(answers) == 4
        for question, answer in answers:
            reached = question in heard
            expected = ValueError if question == "boom" else ("heard", question)
            assert answer == (expected if reached else pykka.ActorDeadError)

    explore(scenario)


def test_a_chain_of_small_mailboxes_delivers_everything_in_order() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        heard: list[Any] = []
        last = system.spawn(Recorder, heard, capacity=1)
        middle = [system.spawn(Forwarder, last, capacity=1) for _ in range(2)]
        first = system.spawn(Forwarder, *middle, copies=2, capacity=2)
        for n in range(4):
            first.tell(n)
        system.stop()
        assert sorted(messages(heard)) == sorted([0, 1, 2, 3] * 4)
        assert heard[-1] == "stop"

    explore(scenario)


def test_one_sender_pair_stays_in_order_through_an_outbox() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        heard: list[Any] = []
        last = system.spawn(BatchRecorder, heard, explorer.pause, capacity=2)
        left = system.spawn(Forwarder, last, capacity=3)
        right = system.spawn(Forwarder, last, capacity=3)
        all_of(
            explorer,
            lambda: [left.tell(("left", n)) for n in range(5)],
            lambda: [right.tell(("right", n)) for n in range(5)],
            lambda: [last.tell(("outside", n)) for n in range(5)],
        )
        system.stop()
        for sender in ("left", "right", "outside"):
            assert_in_order(messages(heard), sender, list(range(5)))

    explore(scenario)


def test_senders_in_an_outbox_or_blocked_are_released_when_the_target_stops() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        heard: list[Any] = []
        last = system.spawn(Recorder, heard, explorer.pause, capacity=1)
        sender = system.spawn(Forwarder, last, capacity=8)
        refused = 0

        def block() -> None:
            nonlocal refused
            for n in range(3):
                try:
                    last.tell(("outside", n))
                except pykka.ActorDeadError:
                    refused += 1

        all_of(
            explorer,
            lambda: sender.tell_many([("inside", n) for n in range(4)]),
            block,
            lambda: last.stop(),
        )
        system.stop()
        assert len(messages(heard)) + refused + system.statistics().totals.undelivered == 7

    explore(scenario)


def test_a_sender_that_comes_back_from_a_full_mailbox_delivers_what_it_accepts_until_it_is_stopped() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        heard: list[Any] = []
        last = system.spawn(Recorder, heard, capacity=1)
        sender = system.spawn(Forwarder, last, copies=3, capacity=4)
        sender.tell(1)
        explorer.pause(lambda: len(messages(heard)) >= 2 and sender.actor_inbox.outbox is None)
        sender.tell(2)
        sender.stop()
        system.stop()
        assert messages(heard) == [1, 1, 1, 2, 2, 2]

    explore(scenario)


def test_actors_that_flood_each_other_are_named_and_the_others_go_on() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        reports: list[Failed] = []
        boss = system.spawn(Supervisor, reports)
        names = ["a", "b", "c"]
        ring = [system.spawn(Forwarder, copies=2, capacity=2, name=name, supervisor=boss) for name in names]
        for ref, following in zip(ring, ring[1:] + ring[:1], strict=True):
            ref.tell(("targets", following))
        ring[0].tell("one becomes two, four, eight ...")
        explorer.pause(lambda: bool(reports))
        system.stop()
        [report] = reports
        assert isinstance(report.error, DeadlockError)
        assert sorted(waiting.name for waiting in report.error.cycle) == names
        assert sorted(waiting.waiting_on for waiting in report.error.cycle) == names
        assert all(waiting.depth == waiting.capacity for waiting in report.error.cycle)

    explore(scenario)


@BOTH
def test_a_restarted_actor_goes_on_with_the_messages_behind_the_one_that_failed(
    recorder: type[Recorder],
) -> None:
    def scenario(explorer: Explorer) -> None:
        clock = ManualClock()
        system = ActorSystem("test", workers=2, clock=clock)
        reports: list[Failed] = []
        boss = system.spawn(Supervisor, reports)
        heard: list[Any] = []
        ref = system.spawn(recorder, heard, capacity=2, supervisor=boss, restart=Restart(first_seconds=1))

        def lost() -> list[Any]:
            return [entry for report in reports for entry in as_list(report.message)]

        def advance_watermark() -> None:
            while {*messages(heard), *lost()} != {*"abcde", "boom"} or lost().count("boom") < 2:
                clock.advance(5)
                explorer.pause()
            while heard.count("start") <= heard.count("failure"):
                clock.advance(5)
                explorer.pause()

        all_of(
            explorer,
            lambda: [ref.tell(message) for message in ("a", "boom", "b", "c")],
            lambda: [ref.tell(message) for message in ("d", "boom", "e")],
            advance_watermark,
        )
        system.stop()
        assert lost().count("boom") == 2
        assert heard.count("failure") == len(reports)
        assert heard.count("start") == len(reports) + 1
        assert heard.count("stop") == 1

    explore(scenario)


def as_list(message: Any) -> list[Any]:
    return message if isinstance(message, list) else [message]


def test_an_actor_that_is_stopped_while_it_pauses_before_a_restart_ends_at_once() -> None:
    def scenario(explorer: Explorer) -> None:
        clock = ManualClock()
        system = ActorSystem("test", workers=2, clock=clock)
        heard: list[Any] = []
        reports: list[Failed] = []
        boss = system.spawn(Supervisor, reports)
        ref = system.spawn(Recorder, heard, supervisor=boss, restart=Restart(first_seconds=1))
        stopped: list[bool] = []

        def fail() -> None:
            with suppress(pykka.ActorDeadError):
                ref.tell("boom")

        all_of(
            explorer,
            fail,
            lambda: stopped.append(ref.stop()),
            lambda: clock.advance(1),
        )
        system.stop()
        assert stopped == [True]
        assert not ref.is_alive()
        assert heard.count("stop") + heard.count("failure") >= 1
        assert heard.count("stop") <= 1

    explore(scenario)


def test_a_stop_that_runs_out_of_time_drops_what_waits_and_counts_it() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        stream: Stream[Any] = Stream(2, name="nobody reads")
        heard: list[Any] = []
        ref = system.spawn(Forwarder, stream, capacity=4)
        other = system.spawn(Recorder, heard, capacity=4)
        ref.tell_many([1, 2, 3, 4])
        other.tell("x")
        answer = ref.ask("y", block=False)
        with suppress(pykka.Timeout):  # here any wait may be too short
            system.stop(timeout=1.0)
        system.stop()
        totals = system.statistics().totals
        in_stream = len(stream.actor_inbox.messages)
        assert in_stream + totals.dropped + totals.undelivered + len(messages(heard)) == 6
        assert heard.count("stop") == 1
        with pytest.raises(pykka.ActorDeadError):
            answer.get()

    explore(scenario)


def test_a_cancelled_timer_is_silent_and_ticks_coalesce() -> None:
    class Ticking(PooledActor):
        def __init__(self, heard: list[str], explorer: Explorer) -> None:
            self.heard = heard
            self.explorer = explorer

        def on_start(self) -> None:
            self.timer = self.every(1.0, "tick")

        def on_receive(self, message: str) -> None:
            self.heard.append(message)
            waiting = [entry for entry in self.actor_inbox.messages if not isinstance(entry, str)]
            assert len(waiting) <= 1
            self.explorer.pause()
            if message == "cancel":
                self.timer.cancel()

    def scenario(explorer: Explorer) -> None:
        clock = ManualClock()
        system = ActorSystem("test", workers=2, clock=clock)
        heard: list[str] = []
        reports: list[Failed] = []
        boss = system.spawn(Supervisor, reports)
        ref = system.spawn(Ticking, heard, explorer, supervisor=boss)
        all_of(
            explorer,
            lambda: [clock.advance(1.0) for _ in range(6)],
            lambda: [ref.tell(message) for message in ("a", "cancel", "b")],
        )
        system.stop()
        assert not reports
        assert heard.count("tick") <= 6
        assert "tick" not in heard[heard.index("cancel") :]
        assert [entry for entry in heard if entry != "tick"] == ["a", "cancel", "b"]

    explore(scenario)


def test_a_clock_calls_once_at_the_time_or_never_after_a_cancel() -> None:
    def scenario(explorer: Explorer) -> None:
        class Accelerated(SystemClock):
            now = staticmethod(lambda: explorer.seconds)

        clock = Accelerated()
        called: list[tuple[int, float]] = []
        prevented: list[int] = []

        def set_alarms(first: int) -> None:
            alarms = [
                clock.call_at(5.0 - n, lambda n=n: called.append((n, explorer.seconds)))
                for n in range(first, first + 3)
            ]
            if alarms[1].cancel():
                prevented.append(first + 1)

        all_of(explorer, lambda: set_alarms(0), lambda: set_alarms(2))
        explorer.pause(lambda: len(called) + len(prevented) == 6)
        assert sorted([n for n, _ in called] + prevented) == [0, 1, 2, 2, 3, 4]
        assert all(seconds >= 5.0 - n for n, seconds in called)
        clock.call_at(9.0, lambda: called.append((9, explorer.seconds)))
        explorer.pause(lambda: called[-1][0] == 9)

    explore(scenario)


class Loop(asyncio.AbstractEventLoop):
    """Enough of an event loop to run one coroutine in an explored thread."""

    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self.wakes = 0

    def get_debug(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
        self.wakes += 1
        self._calls.put((callback, args))

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio._set_running_loop(self)
        try:
            while True:
                sleeper = coroutine.send(None)
                while not sleeper.done():
                    callback, args = self._calls.get()
                    callback(*args)
        except StopIteration:
            pass
        finally:
            asyncio._set_running_loop(None)


def test_a_stream_hands_over_everything_in_order_and_never_holds_more_than_its_capacity() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        stream: Stream[Any] = Stream(3, low_water=1, max_batch=2)
        senders = [system.spawn(Forwarder, stream, capacity=2) for _ in range(2)]
        loop = Loop(explorer.queue())
        got: list[Any] = []

        async def read() -> None:
            async for items in stream:
                assert 1 <= len(items) <= 2
                assert len(stream.actor_inbox.messages) <= 3
                got.extend(items)

        def send() -> None:
            all_of(
                explorer,
                lambda: [senders[0].tell(("a", n)) for n in range(5)],
                lambda: [senders[1].tell(("b", n)) for n in range(5)],
            )
            system.stop()
            stream.finish()

        all_of(explorer, lambda: loop.run(read()), send)
        assert_in_order(got, "a", list(range(5)))
        assert_in_order(got, "b", list(range(5)))
        assert loop.wakes <= 11

    explore(scenario)


def test_a_reader_of_a_stream_never_sleeps_on_items() -> None:
    def scenario(explorer: Explorer) -> None:
        stream: Stream[int] = Stream(4)
        loop = Loop(explorer.queue())
        got: list[int] = []

        async def read() -> None:
            while len(got) < 3:
                got.extend(await anext(stream))

        all_of(explorer, lambda: loop.run(read()), lambda: [stream.offer(n) for n in range(3)])
        assert got == [0, 1, 2]

    explore(scenario)


def test_a_stream_that_is_closed_by_its_reader_lets_its_senders_go() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        stream: Stream[Any] = Stream(1)
        sender = system.spawn(Forwarder, stream, capacity=1)
        loop = Loop(explorer.queue())

        async def read_once() -> None:
            await anext(stream)
            stream.close()

        all_of(explorer, lambda: loop.run(read_once()), lambda: [sender.tell(n) for n in range(5)])
        system.stop()
        assert system.statistics().totals.undelivered <= 4

    explore(scenario)


def test_a_task_that_waits_for_room_is_woken_or_told_that_the_actor_has_stopped() -> None:
    def scenario(explorer: Explorer) -> None:
        system = small_system()
        heard: list[Any] = []
        ref = system.spawn(Recorder, heard, explorer.pause, capacity=1)
        loop = Loop(explorer.queue())
        accepted: list[Any] = []

        async def send() -> None:
            for n in range(4):
                try:
                    await ref.atell(("task", n))
                except pykka.ActorDeadError:
                    return
                accepted.append(("task", n))

        def block() -> None:
            for n in range(3):
                try:
                    ref.tell(("thread", n))
                except pykka.ActorDeadError:
                    return
                accepted.append(("thread", n))

        all_of(explorer, lambda: loop.run(send()), block, lambda: ref.stop())
        system.stop()
        assert sorted(messages(heard)) == sorted(accepted)

    explore(scenario)


def test_two_systems_stop_while_an_actor_of_one_waits_on_the_other() -> None:
    def scenario(explorer: Explorer) -> None:
        front, back = small_system(), small_system()
        heard: list[Any] = []
        last: PooledRef[Recorder] = back.spawn(Recorder, heard, capacity=1)
        first = front.spawn(Forwarder, last, copies=3, capacity=4)
        first.tell_many([1, 2])
        all_of(explorer, front.stop, front.stop)
        back.stop()
        assert messages(heard) == [1, 1, 1, 2, 2, 2]

    explore(scenario)
