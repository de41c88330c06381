"""Pooled actors are pykka actors."""

from __future__ import annotations

from typing import Any

import pykka
import pytest

from tidemill.actors import ActorSystem, PooledActor, PooledFuture, PooledRef, SeededSystem

from .cast import Recorder


class Shop(PooledActor):
    def __init__(self) -> None:
        super().__init__()
        self.stock = {"tide": 1}

    def sell(self, name: str, count: int = 1) -> int:
        self.stock[name] -= count
        return self.stock[name]


def test_actor_ref_and_future_are_pykkas(threads: ActorSystem) -> None:
    ref = threads.spawn(Recorder, [], name="it")
    assert isinstance(ref, pykka.ActorRef)
    assert isinstance(ref, PooledRef)
    assert issubclass(ref.actor_class, pykka.Actor)
    answer = ref.ask("a", block=False)
    assert isinstance(answer, pykka.Future)
    assert isinstance(answer, PooledFuture)
    assert ref.actor_urn == "test/it"
    assert str(ref) == "Recorder (test/it)"
    assert not ref.actor_stopped.is_set()


def test_a_proxy_calls_methods_and_reads_and_writes_attributes(threads: ActorSystem) -> None:
    proxy = threads.spawn(Shop).proxy()
    assert proxy.sell("tide", count=3).get() == -2
    assert proxy.stock.get() == {"tide": -2}
    proxy.stock = {"mill": 5}
    assert proxy.sell("mill").get() == 4


def test_pykkas_registry_stays_empty(threads: ActorSystem) -> None:
    threads.spawn(Recorder, []).ask("a")
    assert pykka.ActorRegistry.get_all() == []


def test_a_pooled_actor_is_started_by_a_system_only() -> None:
    with pytest.raises(TypeError, match=r"Recorder needs a system: ActorSystem\.spawn\(Recorder, \.\.\.\)"):
        Recorder.start([])


def test_a_message_that_nobody_handles_is_logged_by_pykka(
    seeded: SeededSystem, caplog: pytest.LogCaptureFixture
) -> None:
    class Idle(PooledActor):
        pass

    ref: PooledRef[Any] = seeded.spawn(Idle, name="idle")
    ref.tell("hello")
    seeded.run()
    assert "Unexpected message received by Idle (seeded/idle): hello" in caplog.text
