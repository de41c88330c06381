"""How long an actor keeps a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tidemill.actors import ManualClock, PooledActor, SeededSystem
from tidemill.actors.process import MAX_BATCH, SLICE_SECONDS
from tidemill.actors.system import ActorSystem

from .cast import BatchRecorder


class Slow(PooledActor):
    """Each message advances the manual clock by `milliseconds`."""

    def __init__(self, heard: list[Any], milliseconds: float = 0) -> None:
        self.heard = heard
        self.seconds = milliseconds / 1000

    def on_receive(self, message: Any) -> None:
        self.heard.append(message)
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(self.seconds)


class SlowBatch(Slow):
    def on_receive_batch(self, messages: Sequence[Any]) -> None:
        self.heard.append(len(messages))
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(self.seconds * len(messages))


def share_a_worker(hot_class: type[Slow], milliseconds: float) -> list[Any]:
    """Return what is heard if one actor has 300 messages, and the next one in the queue has one."""
    heard: list[Any] = []
    queue: list[Any] = []
    system = SeededSystem()
    system.ready.put = queue.append  # type: ignore[method-assign]
    hot = system.spawn(hot_class, heard, milliseconds, capacity=1000)
    other = system.spawn(Slow, heard)
    hot.tell_many(list(range(300)))
    other.tell("other")
    while queue:
        queue.pop(0).poll()
    return heard


def test_an_actor_with_many_messages_goes_to_the_tail_after_so_many() -> None:
    heard = share_a_worker(Slow, 0)
    assert heard.index("other") == MAX_BATCH
    assert [entry for entry in heard if entry != "other"] == list(range(300))


def test_an_actor_with_slow_messages_goes_to_the_tail_after_a_slice() -> None:
    heard = share_a_worker(Slow, 2)
    assert heard.index("other") == 3  # 2 ms each: the third ends after the slice of 5 ms
    assert [entry for entry in heard if entry != "other"] == list(range(300))


@pytest.mark.parametrize("milliseconds", [0.01, 0.5, 2, 20])
def test_batches_grow_to_what_fits_into_a_slice(milliseconds: float) -> None:
    sizes = [entry for entry in share_a_worker(SlowBatch, milliseconds) if entry != "other"]
    assert sum(sizes) == 300
    fits = max(1, SLICE_SECONDS * 1000 / milliseconds)
    assert all(size <= min(MAX_BATCH, 2 * fits) for size in sizes)
    assert max(sizes) >= min(MAX_BATCH, fits / 8)


def test_batches_shrink_when_messages_become_slow() -> None:
    class Tiring(SlowBatch):
        def on_receive_batch(self, messages: Sequence[Any]) -> None:
            self.seconds = 0.0 if messages[0] < 100 else 0.001
            super().on_receive_batch(messages)

    heard = share_a_worker(Tiring, 0)
    assert MAX_BATCH in heard
    assert heard[-2] <= SLICE_SECONDS / 0.001


def test_one_at_a_time_even_with_many_workers() -> None:
    heard: list[Any] = []
    with ActorSystem("test", workers=4) as system:
        ref = system.spawn(BatchRecorder, heard, capacity=8)
        for n in range(500):
            ref.tell(n)
    assert "failure" not in heard
    assert [n for batch in heard if isinstance(batch, list) for n in batch] == list(range(500))


def test_an_actor_that_takes_all_gets_all_waiting_messages_however_long_its_turns_take() -> None:
    class Greedy(SlowBatch):
        takes_all = True

    sizes = [entry for entry in share_a_worker(Greedy, 20) if entry != "other"]
    assert sizes == [MAX_BATCH] * 4 + [300 - 4 * MAX_BATCH]
