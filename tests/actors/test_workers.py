"""Threads that several systems share."""

from __future__ import annotations

from threading import Event

import pytest

from tidemill.actors import ActorSystem, PooledActor, Workers
from tidemill.testing.progress import happened


class Busy(PooledActor[int]):
    """Has always something to do."""

    def on_receive(self, message: int) -> None:
        if not self.stopping.is_set():
            self.post(message)

    def __init__(self, stopping: Event) -> None:
        super().__init__()
        self.stopping = stopping


class Noting(PooledActor[Event]):
    def on_receive(self, message: Event) -> None:
        message.set()


def test_a_busy_system_doesnt_starve_another() -> None:
    workers, stopping = Workers("shared", 1), Event()
    busy, other = ActorSystem("busy", workers=workers), ActorSystem("other", workers=workers)
    for _ in range(5):
        busy.spawn(Busy, stopping).tell(1)
    done = Event()
    other.spawn(Noting).tell(done)
    happened(done)
    stopping.set()
    other.stop()
    busy.stop()
    workers.close()


def test_a_stopped_system_leaves_shared_workers_to_the_others() -> None:
    workers = Workers("shared", 2)
    one, other = ActorSystem("one", workers=workers), ActorSystem("other", workers=workers)
    assert one.statistics().workers == 2
    one.stop()
    done = Event()
    other.spawn(Noting).tell(done)
    happened(done)
    other.stop()
    workers.close()
    workers.close()


def test_there_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Workers("none", 0)
