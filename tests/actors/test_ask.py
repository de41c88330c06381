"""Asks and their futures, for threads and for tasks."""

from __future__ import annotations

import asyncio
import queue
from typing import Any

import pykka
import pytest

from tidemill.actors import ActorSystem, PooledActor, PooledFuture, SeededSystem, Stream

from .cast import BatchRecorder, Forwarder, Recorder

BOTH = pytest.mark.parametrize("recorder", [Recorder, BatchRecorder])


class Deaf(PooledActor):
    """Waits on a stream that nobody reads, so that it answers nothing."""

    def __init__(self, stream: Stream[Any]) -> None:
        self.stream = stream

    def on_start(self) -> None:
        for n in range(2):
            self.send(self.stream, n)

    def on_receive(self, message: Any) -> Any:
        return message


@BOTH
def test_an_ask_returns_what_on_receive_returns(seeded: SeededSystem, recorder: type[Recorder]) -> None:
    assert seeded.spawn(recorder, []).ask("a") == ("heard", "a")


@BOTH
def test_an_ask_raises_what_on_receive_raises_and_the_actor_goes_on(
    seeded: SeededSystem, recorder: type[Recorder]
) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(recorder, heard)
    with pytest.raises(ValueError, match="boom"):
        ref.ask("boom")
    assert "failure" not in heard
    assert seeded.statistics().totals.failed == 0


@BOTH
def test_an_ask_keeps_its_place_among_tells(seeded: SeededSystem, recorder: type[Recorder]) -> None:
    heard: list[Any] = []
    ref = seeded.spawn(recorder, heard)
    ref.tell("a")
    first = ref.ask("b", block=False)
    second = ref.ask("c", block=False)
    ref.tell_many(["d", "e"])
    assert (first.get(), second.get()) == (("heard", "b"), ("heard", "c"))
    seeded.run()
    flat = [entry for batch in heard for entry in (batch if isinstance(batch, list) else [batch])]
    assert flat == ["start", "a", "b", "c", "d", "e"]


def test_an_ask_without_an_answer_in_time_raises_timeout(seeded: SeededSystem) -> None:
    ref = seeded.spawn(Deaf, Stream(1))
    with pytest.raises(pykka.Timeout):
        ref.ask("?", timeout=2.0)
    assert seeded.clock.now() == 2.0


def test_asks_left_when_an_actor_stops_are_answered_with_actor_dead_error(seeded: SeededSystem) -> None:
    ref = seeded.spawn(Deaf, Stream(1))
    answers = [ref.ask(n, block=False) for n in range(3)]
    seeded.stop(timeout=1.0)
    for answer in answers:
        with pytest.raises(pykka.ActorDeadError):
            answer.get()
    assert seeded.statistics().totals.dropped == 3


def test_an_answered_future_refuses_another_answer() -> None:
    future: PooledFuture[int] = PooledFuture()
    future.set(1)
    with pytest.raises(queue.Full):
        future.set(2)
    with pytest.raises(queue.Full):
        future.set_exception((ValueError, ValueError("late"), None))
    assert future.get() == 1


def test_a_future_that_its_owner_answered_does_not_harm_the_actor(seeded: SeededSystem) -> None:
    ref = seeded.spawn(BatchRecorder, [])
    future = ref.ask("a", block=False)
    future.set("mine")
    assert ref.ask("b") == ("heard", "b")
    assert future.get() == "mine"


def test_set_exception_takes_the_one_being_handled() -> None:
    future: PooledFuture[int] = PooledFuture()
    try:
        raise KeyError("k")
    except KeyError:
        future.set_exception()
    with pytest.raises(KeyError):
        future.get()


def test_futures_map_filter_and_join_as_pykkas_do(threads: ActorSystem) -> None:
    ref = threads.spawn(Recorder, [])
    first, second = ref.ask("a", block=False), ref.ask("b", block=False)
    assert first.map(lambda pair: pair[1]).get() == "a"
    assert first.join(second).get() == [("heard", "a"), ("heard", "b")]
    assert pykka.get_all([first, second]) == [("heard", "a"), ("heard", "b")]


async def test_a_future_can_be_awaited_and_the_loop_goes_on_meanwhile(threads: ActorSystem) -> None:
    released = asyncio.Event()

    class ResumeFilter(PooledActor):
        def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
            self.loop = loop

        def on_receive(self, message: Any) -> Any:
            asyncio.run_coroutine_threadsafe(released.wait(), self.loop).result()
            return message

    ref = threads.spawn(ResumeFilter, asyncio.get_running_loop())
    answer = asyncio.ensure_future(ref.aask("through"))
    mapped = ref.ask("mapped", block=False).map(str.upper)
    released.set()
    assert await answer == "through"
    assert await mapped == "MAPPED"
    done: PooledFuture[int] = PooledFuture()
    done.set(7)
    assert await done == 7


async def test_an_awaited_ask_raises_what_the_actor_raises(threads: ActorSystem) -> None:
    ref = threads.spawn(Recorder, [])
    with pytest.raises(ValueError, match="boom"):
        await ref.aask("boom")
    await asyncio.to_thread(ref.stop)
    with pytest.raises(pykka.ActorDeadError):
        await ref.aask("late")
    with pytest.raises(pykka.ActorDeadError):
        await ref.atell("late")


async def test_atell_waits_for_room_without_blocking_the_loop(threads: ActorSystem) -> None:
    stream: Stream[int] = Stream(2)
    ref = threads.spawn(Forwarder, stream, capacity=2)

    async def send() -> None:
        for n in range(50):
            await ref.atell(n)
        await asyncio.to_thread(ref.stop)
        stream.finish()

    sending = asyncio.ensure_future(send())
    assert [item async for items in stream for item in items] == list(range(50))
    await sending


async def test_a_cancelled_atell_sends_nothing_later(threads: ActorSystem) -> None:
    stream: Stream[Any] = Stream(1)
    ref = threads.spawn(Forwarder, stream, capacity=1, name="full")
    sent = 0
    while True:
        sending = asyncio.ensure_future(ref.atell(sent))
        waiting = await until_told_or_waiting(threads, sending)
        if waiting:
            break
        sent += 1
    assert [(entry.name.split()[0], entry.waiting_on) for entry in waiting] == [("task", "full")]
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert threads.statistics().waiting == ()
    stopping = ref.stop(block=False)
    got = [item for _ in range(sent) for item in await anext(stream)] if sent else []
    assert got == list(range(sent))
    assert await stopping is True


async def until_told_or_waiting(system: ActorSystem, sending: asyncio.Future[None]) -> Any:
    """Return what waits in the system, or None after the telling is done."""
    while True:
        await asyncio.sleep(0)
        if sending.done():
            return None
        if waiting := system.statistics().waiting:
            return waiting


def test_a_task_whose_loop_is_gone_does_not_harm_the_worker(threads: ActorSystem) -> None:
    stream: Stream[Any] = Stream(1)
    ref = threads.spawn(Forwarder, stream, capacity=1)
    loop = asyncio.new_event_loop()

    async def ask_and_leave() -> None:
        asyncio.ensure_future(ref.aask("never awaited"))  # noqa: RUF006
        await asyncio.sleep(0)

    loop.run_until_complete(ask_and_leave())
    for task in asyncio.all_tasks(loop):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(task)
    loop.close()
    assert threads.spawn(Recorder, []).ask("alive") == ("heard", "alive")
