"""The runtime without threads: the same seed, the same interleaving."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tidemill.actors import PooledActor, SeededSystem, Stream

from .cast import Forwarder, Recorder


def history(seed: int) -> list[Any]:
    """Return what one recorder hears from two chains of actors."""
    system = SeededSystem(seed)
    heard: list[Any] = []
    last = system.spawn(Recorder, heard, capacity=3)
    chains = [system.spawn(Forwarder, system.spawn(Forwarder, last, capacity=2)) for _ in range(2)]
    for n in range(20):
        for name, chain in zip("ab", chains, strict=True):
            chain.tell((name, n))
    system.stop()
    return heard


def test_the_same_seed_gives_the_same_history() -> None:
    assert history(5) == history(5)


def test_other_seeds_give_other_histories_of_the_same_messages() -> None:
    histories = [history(seed) for seed in range(10)]
    assert len({str(heard) for heard in histories}) >= 8
    assert len({str(sorted(map(str, heard))) for heard in histories}) == 1


def test_time_jumps_to_the_next_timer_once_all_are_idle() -> None:
    class Sleeper(PooledActor):
        def on_start(self) -> None:
            self.after(3600, "wake up")

        def on_receive(self, message: Any) -> Any:
            if message == "wake up":
                self.stop()

    system = SeededSystem()
    ref = system.spawn(Sleeper)
    system.run()
    assert ref.is_alive()
    assert system.clock.now() == 0
    system.run(seconds=7200)
    assert not ref.is_alive()
    assert system.clock.now() == 7200


def test_a_wait_that_nothing_can_end_is_an_error_at_once() -> None:
    system = SeededSystem()
    asleep = system._lock
    with asleep, pytest.raises(RuntimeError, match="would wait forever"):
        system.wait(asleep, None)


def test_an_actor_cannot_run_its_own_system() -> None:
    class Impatient(PooledActor):
        def on_receive(self, message: Any) -> Any:
            assert isinstance(self.system, SeededSystem)
            self.system.run()

    system = SeededSystem()
    with pytest.raises(RuntimeError, match="the system that runs it"):
        system.spawn(Impatient).ask("run")


def test_step_gives_one_actor_a_turn() -> None:
    system = SeededSystem()
    heard: list[Any] = []
    system.spawn(Recorder, heard)
    assert system.step()
    assert heard == ["start"]
    while system.step():
        pass
    assert not system.step()


async def test_a_seeded_system_runs_beside_the_tasks_of_an_event_loop() -> None:
    system = SeededSystem()
    stream: Stream[Any] = Stream(2)
    running = asyncio.ensure_future(system.run_beside())
    assert await system.spawn(Recorder, []).aask("a") == ("heard", "a")
    ref = system.spawn(Forwarder, stream, capacity=1)
    got: list[Any] = []
    for n in range(6):
        await ref.atell(n)
        if n % 2:
            got += await anext(stream)
    while len(got) < 6:
        got += await anext(stream)
    assert got == list(range(6))
    running.cancel()
    system.stop()
