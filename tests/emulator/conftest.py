from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tidemill.actors.clock import ManualClock
from tidemill.emulator import Cluster

from .client import Client


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    names = [t.name for t in threading.enumerate() if t not in before and t.name.startswith("tidemill")]
    assert [name for name in names if name != "tidemill-clock"] == []  # that of all clocks of the process


@pytest.fixture
def make_client() -> Iterator[Callable[..., Client]]:
    """A client of a new cluster that counts timestamps from 1 and ticks only when told to."""
    made: list[Client] = []

    def make(**options: Any) -> Client:
        options = {"tick_seconds": None, "clock": ManualClock(epoch=0.0)} | options
        made.append(Client(Cluster(**options)))
        return made[-1]

    yield make
    for client in made:
        client.close()
        client.cluster.close()
