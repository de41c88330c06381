"""From actors to asyncio, or to a thread."""

from __future__ import annotations

import asyncio
from threading import Thread
from typing import Any

import pykka
import pytest

from tidemill.actors import ActorSystem, PooledActor, SeededSystem, Stream
from tidemill.testing.progress import eventually

from .cast import Forwarder


class Source(PooledActor):
    """Sends a given count of numbers, as fast as the stream takes them."""

    def __init__(self, stream: Stream[int], count: int) -> None:
        self.stream = stream
        self.count = count

    def on_start(self) -> None:
        self.after(0, 0)

    def on_receive(self, number: int) -> None:
        if number < self.count:
            self.send(self.stream, number)
            self.after(0, number + 1)
        else:
            self.stream.finish()


async def collect(stream: Stream[Any]) -> list[Any]:
    return [item async for items in stream for item in items]


@pytest.mark.parametrize(
    ("capacity", "low_water", "max_batch"), [(1, 0, 1), (4, 0, 4), (4, 3, 1), (64, 32, 10)]
)
async def test_items_come_in_order_whatever_the_sizes(
    threads: ActorSystem, capacity: int, low_water: int, max_batch: int
) -> None:
    stream: Stream[int] = Stream(capacity, low_water=low_water, max_batch=max_batch)
    threads.spawn(Source, stream, 300)
    assert await collect(stream) == list(range(300))


async def test_a_batch_is_all_that_waits_up_to_max_batch() -> None:
    stream: Stream[int] = Stream(8, max_batch=3)
    assert [stream.offer(n) for n in range(9)] == [True] * 8 + [False]
    assert [await anext(stream) for _ in range(3)] == [[0, 1, 2], [3, 4, 5], [6, 7]]


async def test_senders_go_on_when_the_stream_has_drained_to_its_low_water_mark() -> None:
    seeded = SeededSystem()
    stream: Stream[int] = Stream(4, low_water=1, max_batch=1)
    seeded.spawn(Forwarder, stream).tell_many(range(20))
    seeded.run()
    depths = []
    for _ in range(8):
        await anext(stream)
        seeded.run()
        depths.append(stream.statistics().depth)
    assert depths == [3, 2, 4, 3, 2, 4, 3, 2]
    stream.close()
    seeded.stop()


async def test_nobody_overtakes_a_sender_that_waits_for_the_low_water_mark() -> None:
    seeded = SeededSystem()
    stream: Stream[Any] = Stream(4, low_water=1, max_batch=1)
    seeded.spawn(Forwarder, stream).tell_many(["waiting"] * 6)
    seeded.run()
    got = []
    for _ in range(8):
        got += await anext(stream)
        seeded.run()
        stream.offer("pushing")
    assert got.count("waiting") == 6
    stream.close()
    seeded.stop()


async def test_many_items_wake_the_loop_once() -> None:
    loop = asyncio.get_running_loop()
    stream: Stream[int] = Stream(64)
    reader = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    wakes = 0
    call_soon_threadsafe = loop.call_soon_threadsafe

    def counting(*args: Any, **kwargs: Any) -> asyncio.Handle:
        nonlocal wakes
        wakes += 1
        return call_soon_threadsafe(*args, **kwargs)

    loop.call_soon_threadsafe = counting  # type: ignore[method-assign]
    for n in range(50):
        stream.offer(n)
    assert await reader == list(range(50))
    assert wakes == 1


async def test_after_finish_the_reader_gets_what_was_accepted_and_then_the_end() -> None:
    stream: Stream[int] = Stream()
    stream.offer(1)
    stream.finish()
    assert not stream.offer(2)
    assert await collect(stream) == [1]


async def test_finish_wakes_a_reader_that_sleeps() -> None:
    stream: Stream[int] = Stream()
    reader = asyncio.ensure_future(collect(stream))
    await asyncio.sleep(0)
    stream.finish()
    assert await reader == []


async def test_an_error_reaches_the_reader_behind_the_items() -> None:
    stream: Stream[int] = Stream()
    stream.offer(1)
    stream.finish(OSError("source gone"))
    stream.finish(ValueError("too late"))
    assert await anext(stream) == [1]
    for _ in range(2):
        with pytest.raises(OSError, match="source gone"):
            await anext(stream)


async def test_closing_drops_what_waits_and_lets_the_senders_go() -> None:
    seeded = SeededSystem()
    stream: Stream[int] = Stream(2)
    ref = seeded.spawn(Forwarder, stream)
    ref.tell_many(range(10))
    seeded.run()
    assert stream.statistics().waiting[0].name == ref.name
    stream.close()
    seeded.stop()
    assert seeded.statistics().totals.undelivered == 8
    assert await collect(stream) == []


async def test_a_cancelled_read_has_taken_nothing() -> None:
    stream: Stream[int] = Stream()
    reader = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    stream.offer(1)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    stream.offer(2)
    assert await anext(stream) == [1, 2]


async def test_a_second_reader_is_refused() -> None:
    stream: Stream[int] = Stream(name="mine")
    reader = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="the stream mine has a reader already"):
        await anext(stream)
    stream.offer(1)
    assert await reader == [1]


def test_a_stream_whose_loop_is_gone_keeps_its_bound_and_shows_who_waits(threads: ActorSystem) -> None:
    stream: Stream[int] = Stream(2, name="left")

    async def read_and_leave() -> None:
        await asyncio.wait_for(anext(stream), 0)

    with pytest.raises(TimeoutError):
        asyncio.run(read_and_leave())
    source = threads.spawn(Forwarder, stream, name="source")
    for n in range(4):
        source.tell(n)
    assert source.stop(block=False)
    stream.close()


@pytest.mark.parametrize(("capacity", "low_water"), [(1, 0), (4, 0), (4, 3), (64, 32)])
def test_a_thread_gets_each_item_in_order_whatever_the_sizes(
    threads: ActorSystem, capacity: int, low_water: int
) -> None:
    stream: Stream[int] = Stream(capacity, low_water=low_water)
    threads.spawn(Source, stream, 300)
    assert list(stream.each()) == list(range(300))
    assert list(stream.each()) == []


def test_a_thread_takes_no_more_than_it_has_read() -> None:
    stream: Stream[int] = Stream(4)
    assert [stream.offer(n) for n in range(4)] == [True] * 4
    assert next(stream.each()) == 0
    stream.finish()
    assert list(stream.each()) == [1, 2, 3]


def test_an_error_reaches_a_thread_behind_the_items() -> None:
    stream: Stream[int] = Stream()
    stream.offer(1)
    stream.finish(OSError("source gone"))
    reader = stream.each()
    assert next(reader) == 1
    with pytest.raises(OSError, match="source gone"):
        next(reader)


def test_closing_wakes_a_thread_that_sleeps_and_one_that_waits_for_room() -> None:
    empty: Stream[int] = Stream()
    full: Stream[int] = Stream(1)
    full.put(1)
    ended: list[str] = []

    def put() -> None:
        with pytest.raises(pykka.ActorDeadError):
            full.put(2)
        ended.append("put")

    threads = [Thread(target=lambda: ended.append(f"read {list(empty.each())}")), Thread(target=put)]
    for thread in threads:
        thread.start()
    eventually(lambda: not empty.actor_inbox.scheduled and full.statistics().waiting)
    for stream in (empty, full):
        stream.close()
    for thread in threads:
        thread.join()
    assert sorted(ended) == ["put", "read []"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"capacity": 0, "low_water": 0}, "low_water of stream: 0"),
        ({"low_water": 64}, "low_water of stream: 64; 0 to 63"),
        ({"max_batch": 0}, "max_batch of stream: 0; at least 1"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Stream(**settings)  # type: ignore[arg-type]
