"""Tells, asks and memory of pooled actors, compared with `pykka.ThreadingActor` in the same run."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from threading import Semaphore
from typing import Any

import pykka

from ..actors import ActorSystem, PooledActor, SystemClock

now = SystemClock.now


class Counting:
    """Counts messages; releases `done` at the last one."""

    def __init__(self, count: int, done: Semaphore) -> None:
        super().__init__()
        self.left = count
        self.done = done

    def on_receive(self, message: object) -> object:
        self.left -= 1
        if not self.left:
            self.done.release()
        return message


class Pooled(Counting, PooledActor[object]):
    pass


class PooledBatch(Pooled):
    def on_receive_batch(self, messages: Sequence[object]) -> None:
        self.left -= len(messages)
        if not self.left:
            self.done.release()


class Threaded(Counting, pykka.ThreadingActor):
    pass


def run(
    *,
    messages: int = 200_000,
    threaded_messages: int = 10_000,
    asks: int = 1_000,
    actors: int = 100_000,
    workers: int = 2,
    capacity: int = 1_024,
    rounds: int = 5,
    yardstick_seconds: float = 10.0,
) -> dict[str, object]:
    """Measure tidemill's and pykka's actors in turn, `rounds` times; figures are medians over the rounds,
    ratios medians over the rounds that measured both.

    Tells per second are counted at the destination: from the first tell until the last message was processed.
    `messages` go to the pooled actors, `threaded_messages` to the slower threading ones; after these have
    taken `yardstick_seconds`, the remaining rounds measure the pooled actors only. `actors` are only created,
    in a process of their own.
    """
    settings = locals().copy()
    measures: dict[str, tuple[Callable[[], float], Callable[[], float]]] = {
        "one_to_one": (
            lambda: _pooled_tells(messages, 1, workers, capacity),
            lambda: _threaded_tells(threaded_messages, 1),
        ),
        "one_to_thousand": (
            lambda: _pooled_tells(messages, 1_000, workers, capacity),
            lambda: _threaded_tells(threaded_messages // 2, 1_000),
        ),
    }
    ours: dict[str, list[float]] = {name: [] for name in (*measures, "tell_many")}
    theirs: dict[str, list[float]] = {name: [] for name in measures}
    latencies: dict[str, list[float]] = {"pooled": [], "threaded": []}
    spent = 0.0
    for number in range(rounds):
        compares = number == 0 or spent < yardstick_seconds
        for name, (pooled, threaded) in measures.items():
            ours[name].append(pooled())
            if compares:
                started = now()
                theirs[name].append(threaded())
                spent += now() - started
        ours["tell_many"].append(_pooled_batches(messages, 64, workers, capacity))
        latencies["pooled"] += _pooled_asks(asks, workers)
        if compares:
            latencies["threaded"] += _threaded_asks(asks)
    create_seconds, create_mb = create_in_own_process(actors, workers)
    figures = {f"{name}_tells_per_second": round(median(values)) for name, values in ours.items()}
    yardstick = {f"{name}_tells_per_second": round(median(values)) for name, values in theirs.items()}
    return {
        "bench": "actors",
        "settings": settings,
        "figures": {
            **figures,
            **_percentiles(latencies["pooled"]),
            "create_seconds": round(create_seconds, 3),
            "create_mb": round(create_mb, 1),
            "rounds": _rounded(ours),
        },
        "yardstick": {
            "what": f"pykka.ThreadingActor of pykka {version('pykka')}",
            **yardstick,
            **_percentiles(latencies["threaded"]),
            "rounds": _rounded(theirs),
        },
        "ratio": {
            name: round(median(a / b for a, b in zip(ours[name], theirs[name], strict=False)), 2)
            for name in measures
        },
    }


def _percentiles(seconds: list[float]) -> dict[str, float]:
    cuts = quantiles(seconds, n=100)
    return {"ask_p50_us": round(cuts[49] * 1e6, 1), "ask_p99_us": round(cuts[98] * 1e6, 1)}


def _rounded(rounds: dict[str, list[float]]) -> dict[str, list[int]]:
    return {name: [round(value) for value in values] for name, values in rounds.items()}


def _tell_round_robin(refs: Sequence[pykka.ActorRef[Any]], each: int, done: Semaphore) -> float:
    """Return the tells per second until every actor has processed `each` messages."""
    gc.collect()
    started = now()
    for message in range(each):
        for ref in refs:
            ref.tell(message)
    for _ in refs:
        done.acquire()
    return len(refs) * each / (now() - started)


def _pooled_tells(messages: int, targets: int, workers: int, capacity: int) -> float:
    done = Semaphore(0)
    each = messages // targets
    with ActorSystem("bench", workers=workers) as system:
        refs = [system.spawn(Pooled, each, done, capacity=capacity) for _ in range(targets)]
        return _tell_round_robin(refs, each, done)


def _pooled_batches(messages: int, size: int, workers: int, capacity: int) -> float:
    done = Semaphore(0)
    batches = messages // size
    batch = list(range(size))
    with ActorSystem("bench", workers=workers) as system:
        ref = system.spawn(PooledBatch, batches * size, done, capacity=capacity)
        started = now()
        for _ in range(batches):
            ref.tell_many(batch)
        done.acquire()
        return batches * size / (now() - started)


def _threaded_tells(messages: int, targets: int) -> float:
    done = Semaphore(0)
    each = max(1, messages // targets)
    refs = [Threaded.start(each, done) for _ in range(targets)]
    try:
        return _tell_round_robin(refs, each, done)
    finally:
        for ref in refs:
            ref.stop()


def _ask_seconds(ref: pykka.ActorRef[Any], asks: int) -> list[float]:
    seconds = []
    for _ in range(asks):
        started = now()
        ref.ask("?")
        seconds.append(now() - started)
    return seconds


def _pooled_asks(asks: int, workers: int) -> list[float]:
    with ActorSystem("bench", workers=workers) as system:
        return _ask_seconds(system.spawn(Pooled, 0, Semaphore(0)), asks)


def _threaded_asks(asks: int) -> list[float]:
    ref = Threaded.start(0, Semaphore(0))
    try:
        return _ask_seconds(ref, asks)
    finally:
        ref.stop()


def create_in_own_process(actors: int, workers: int) -> tuple[float, float]:
    """Return the result of `create` in a fresh process."""
    code = f"from tidemill.benchmarks.actors import create; print(*create({actors}, {workers}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, mb = done.stdout.split()
    return float(seconds), float(mb)


def create(actors: int, workers: int) -> tuple[float, float]:
    """Return the seconds to spawn and start `actors` actors, and the MB that they take."""
    done = Semaphore(0)
    with ActorSystem("bench", workers=workers) as system:
        gc.collect()
        before = _resident_mb()
        started = now()
        refs = [system.spawn(Pooled, 1, done, capacity=64) for _ in range(actors)]
        refs[-1].ask("started?")
        seconds = now() - started
        return seconds, _resident_mb() - before


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6
