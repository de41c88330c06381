"""The thread in which everything of gRPC happens."""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue

import pytest

from tidemill.errors import InvariantViolated, Retryable
from tidemill.puller.grpc.loop import LoopThread
from tidemill.testing.progress import STALL_SECONDS, happened


@pytest.fixture
def errors():
    return []


@pytest.fixture
def loop(errors):
    loop = LoopThread("a loop", errors.append)
    loop.start()
    yield loop
    loop.stop()


async def fail():
    raise Retryable("busy")


async def thread_name():
    return threading.current_thread().name


def test_run_gives_what_the_coroutine_returns_or_raises_from_the_loops_thread(loop):
    assert loop.run(thread_name()) == "a loop"
    with pytest.raises(Retryable, match="busy"):
        loop.run(fail())


def test_run_cancels_the_coroutine_when_its_time_is_over(loop):
    ended = threading.Event()

    async def wait():
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        loop.run(wait(), timeout_seconds=0.01)
    happened(ended)


def test_an_error_of_a_spawned_task_reaches_the_observer(loop, errors):
    async def spawn():
        await asyncio.wait([loop.spawn(fail(), "doomed")])

    loop.run(spawn())
    assert [str(error) for error in errors] == ["busy"]


def test_an_error_of_a_submitted_task_reaches_the_observer():
    reported = SimpleQueue()
    loop = LoopThread("submitted", reported.put)
    loop.start()
    loop.submit(fail())
    assert str(reported.get(timeout=STALL_SECONDS)) == "busy"
    loop.stop()


def test_an_error_of_a_callback_reaches_the_observer(loop, errors):
    async def later():
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)

    loop.run(later())
    assert [type(error) for error in errors] == [ZeroDivisionError]


def test_an_event_of_grpc_that_another_loop_has_taken_is_no_error(loop, errors):
    class PollerCompletionQueue:
        def __call__(self):
            raise BlockingIOError

    async def later():
        asyncio.get_running_loop().call_soon(PollerCompletionQueue())
        await asyncio.sleep(0)

    loop.run(later())
    assert errors == []


def test_a_cancelled_task_is_no_error(loop, errors):
    async def cancel():
        task = loop.spawn(asyncio.Event().wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    loop.run(cancel())
    assert errors == []


def test_stop_cancels_tasks_lets_them_clean_up_and_ends_the_thread(errors):
    loop = LoopThread("stopping", errors.append)
    loop.start()
    steps = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    async def begin():
        loop.spawn(work())
        await asyncio.sleep(0)

    loop.run(begin())
    loop.stop()
    assert steps == ["cleaned up"]
    assert "stopping" not in [thread.name for thread in threading.enumerate()]
    loop.stop()


def test_an_error_while_being_cancelled_reaches_the_observer(errors):
    loop = LoopThread("stopping", errors.append)
    loop.start()

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            await fail()

    async def begin():
        loop.spawn(work())
        await asyncio.sleep(0)

    loop.run(begin())
    loop.stop()
    assert [str(error) for error in errors] == ["busy"]


def test_waiting_in_the_loop_for_the_loop_is_refused(loop):
    async def inside():
        loop.run(fail())

    with pytest.raises(InvariantViolated, match="wait in a loop for itself"):
        loop.run(inside())


def test_those_that_share_a_loop_stop_only_their_own_tasks(errors):
    first, second = (LoopThread(on_error=errors.append, is_shared=True) for _ in range(2))
    first.start()
    second.start()
    ended = []

    async def wait(name):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def begin(loop, name):
        loop.spawn(wait(name))
        loop.spawn(begun_inside(f"{name}, inside"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def begun_inside(name):
        task = asyncio.ensure_future(wait(name))
        await asyncio.wait([task])

    first.run(begin(first, "first"))
    second.run(begin(second, "second"))
    assert first.run(thread_name()) == second.run(thread_name())
    assert first.loop is second.loop
    first.stop()
    assert sorted(ended) == ["first", "first, inside"]
    assert second.run(thread_name()) == "tidemill-tikv"
    second.stop()
    assert sorted(ended) == ["first", "first, inside", "second", "second, inside"]
    assert "tidemill-tikv" not in [thread.name for thread in threading.enumerate()]
    assert errors == []


def test_what_a_stopped_one_has_left_on_a_shared_loop_is_no_error(errors):
    others = []
    first = LoopThread(on_error=errors.append, is_shared=True)
    second = LoopThread(on_error=others.append, is_shared=True)
    first.start()
    second.start()
    called = threading.Event()

    async def later():
        asyncio.get_running_loop().call_later(0.01, use)

    def use():
        called.set()
        first.spawn(fail())

    async def fail_in_a_callback():
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)

    first.run(later())
    first.stop()
    happened(called)
    second.run(fail_in_a_callback())
    second.stop()
    assert (errors, [type(error) for error in others]) == ([], [ZeroDivisionError])


def test_nothing_runs_before_start_or_after_stop():
    loop = LoopThread("idle")
    for use in (loop.run, loop.submit):
        with pytest.raises(InvariantViolated, match="the loop of idle is not running"):
            use(fail())
    loop.start()
    loop.stop()
    with pytest.raises(InvariantViolated, match="is not running"):
        loop.run(fail())
