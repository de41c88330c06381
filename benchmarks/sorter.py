"""The sorter, compared with bare RocksDB, on workload W1."""

from __future__ import annotations

import gc
import resource
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Event, active_count
from typing import Any

from ..actors import ActorSystem, PooledActor, PooledRef, SystemClock
from ..codec.blocks import NOTHING, BlockBuilder, block_of, new_builder
from ..errors import ConfigError
from ..events import PUT, Changes, KvChange, Sorted, Ts
from ..sorter import EventSorter, SorterOptions, open_sorter
from ..testing.workload import FIRST_TS, Window, w1, w1_by_table
from .rocks import YARDSTICKS, Yardstick

IDLE_SECONDS = 0.005
RATES = ("write", "fetch", "write_fetch", "both")
"""Figures that are better if larger."""
MODES = ("write", "fetch", "both", "latency", "tables")
_IN_MEMORY = (
    "everything stayed in memory, and the disk wasn't used: give more --events, or a smaller --memory-tier"
)
_now = SystemClock().now


def run(
    engine: str = "db",
    tables: int = 16,
    events: int = 1_000_000,
    mode: str = "both",
    memory_tier: int = 64 << 20,
    layout: str = "block",
    stores: int = 1,
    workers: int = 1,
    yardsticks: Sequence[str] = ("one_put", "blocks"),
    rounds: int = 3,
) -> dict[str, Any]:
    """Measure one engine and the yardsticks; figures in million events per second, latency in ms.

    `write` takes everything in, `fetch` gets all of it out afterwards, `write_fetch` does one after the
    other, `both` does them at once, window by window; `latency` sends single events to an idle sorter;
    `tables` registers `tables` tables, gives each of them `events / tables`, and removes them. One worker is
    the fastest: Python's threads share a core in this workload, whose cache has the data. Each is measured in
    a process of its own, in turn; the best round counts.
    """
    if mode not in MODES:
        raise ConfigError(f"--mode: no mode {mode!r}; accepted: {', '.join(MODES)}")
    settings = {
        "engine": engine,
        "tables": tables,
        "events": events,
        "mode": mode,
        "memory_tier": memory_tier,
        "layout": layout,
        "stores": stores,
        "workers": workers,
    }
    results_of: dict[str, list[dict[str, object]]] = {}
    for _ in range(rounds):
        for subject in ("ours", *yardsticks):
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                results_of.setdefault(subject, []).append(
                    process.submit(_measure, subject, settings).result()
                )
    best = {subject: _best(results) for subject, results in results_of.items()}
    figures = best.pop("ours")
    spilled = figures.get("spilled_bytes")
    notes = {"note": _IN_MEMORY} if engine != "memory" and spilled == 0 else {}
    return {
        "bench": "sorter",
        **notes,
        "settings": settings,
        "figures": figures,
        "yardstick": best,
        "ratio": _ratios(figures, best),
    }


def _measure(subject: str, settings: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name:
        made: Ours | Theirs
        if subject == "ours":
            made = Ours(settings, Path(name))
        else:
            made = Theirs(YARDSTICKS[subject](Path(name)), settings["tables"])
        if settings["mode"] == "latency":
            return _latency(made)
        if settings["mode"] == "tables":
            return _tables(made, settings["events"], settings["tables"])
        return _throughput(made, w1(settings["events"], settings["tables"]), settings["mode"])


def _best(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the best of each figure: the highest rate, the lowest of everything else."""
    rates = RATES
    return {name: (max if name in rates else min)(result[name] for result in results) for name in results[0]}


class Received(PooledActor[Sorted]):
    """The sorter's output: counts changes."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def on_receive(self, message: Sorted) -> None:
        self._counter.add(len(message.changes), message.resolved)


class Counter:
    """Number of changes received; `reached` is set at `target`."""

    def __init__(self) -> None:
        self.changes = 0
        self.resolved = 0
        self.target = 0
        self.reached = Event()

    def add(self, changes: int, resolved: Ts) -> None:
        self.changes += changes
        self.resolved = resolved
        if self.changes == self.target:
            self.reached.set()

    def expect(self, target: int) -> None:
        self.target = target
        self.reached.clear()
        if self.changes == target:
            self.reached.set()


class Ours:
    """A sorter with its actors."""

    def __init__(self, settings: dict[str, Any], directory: Path) -> None:
        self._counter = Counter()
        self._system = ActorSystem("bench", workers=settings["workers"])
        options = SorterOptions(
            engine=settings["engine"],
            directory=directory,
            memory_bytes=settings["memory_tier"],
            layout=settings["layout"],
            stores=settings["stores"],
        )
        received = self._system.spawn(Received, self._counter, capacity=16)
        self._sorter: EventSorter = open_sorter(options, self._system, received)
        self._writers: list[PooledRef[Changes]] = []
        self._windows: list[tuple[dict[int, BlockBuilder], Ts]] = []
        if settings["mode"] != "tables":
            self.register(range(settings["tables"]))

    def register(self, tables: range) -> None:
        self._writers += [self._sorter.add_table(n, FIRST_TS) for n in tables]
        self._writers[0].ask(Changes(NOTHING))

    def resolve(self, ts: Ts) -> None:
        """Resolve all tables, without changes."""
        self._sorter.advance(dict.fromkeys(range(len(self._writers)), ts))
        while self._sorter.statistics().sent < ts:
            Event().wait(0.001)

    def remove(self) -> None:
        for n in range(1, len(self._writers)):
            self._sorter.remove_table(n)
        self._writers[0].ask(Changes(NOTHING))

    def prepare(self, windows: list[Window]) -> None:
        """Put the changes into builders, as a puller does; they are sorted when they are told."""
        self._windows = []
        for window in windows:
            built = {}
            while window.tables:
                table, changes = window.tables.popitem()
                built[table] = new_builder()
                built[table].extend(changes)
            self._windows.append((built, window.resolved))

    def write(self, _windows: list[Window]) -> None:
        total = 0
        for built, _ in self._windows:
            for table, builder in built.items():
                total += len(builder)
                self._writers[table].tell(Changes(builder.take()))
        # An ask is processed after earlier tells; with more tables each is told only once, in turn.
        for writer in self._writers if len(self._writers) <= 1000 else self._writers[-1:]:
            writer.ask(Changes(NOTHING))
        self._total = total

    def fetch(self, windows: list[Window]) -> None:
        self._counter.expect(self._total)
        self._sorter.advance(dict.fromkeys(range(len(self._writers)), windows[-1].resolved))
        self._counter.reached.wait()

    def both(self, _windows: list[Window]) -> None:
        total = 0
        tables = range(len(self._writers))
        for built, resolved in self._windows:
            total += sum(map(len, built.values()))
            for table, builder in built.items():
                self._writers[table].tell(Changes(builder.take(), resolved))
            if len(built) < len(tables):  # the others are resolved at once, as a puller does
                self._sorter.advance(dict.fromkeys(set(tables).difference(built), resolved))
            self._sorter.acknowledge(self._counter.resolved)
        self._counter.expect(total)
        self._counter.reached.wait()

    def one(self, ts: int) -> None:
        change = KvChange(ts, ts - 1, PUT, b"k" * 40, b"v" * 150)
        self._counter.expect(self._counter.changes + 1)
        first, *others = self._writers
        for writer in others:
            writer.tell(Changes(NOTHING, ts))
        first.tell(Changes(block_of([change]), ts))
        self._counter.reached.wait()

    def close(self) -> dict[str, object]:
        last = self._sorter.statistics()
        self._sorter.close()
        self._system.stop()
        return {"disk_bytes": last.disk_bytes, "spilled_bytes": last.spilled_bytes}


class Theirs:
    """A yardstick's plain loop."""

    def __init__(self, yardstick: Yardstick, tables: int) -> None:
        self._yardstick = yardstick
        self._tables = range(tables)

    def prepare(self, windows: list[Window]) -> None:
        """Do nothing."""

    def write(self, windows: list[Window]) -> None:
        for window in windows:
            self._yardstick.write(window)
            window.tables.clear()

    def fetch(self, windows: list[Window]) -> None:
        self._yardstick.fetch(self._tables, FIRST_TS, windows[-1].resolved)

    def both(self, windows: list[Window]) -> None:
        above = FIRST_TS
        for window in windows:
            self._yardstick.write(window)
            window.tables.clear()
            self._yardstick.fetch(self._tables, above, window.resolved)
            above = window.resolved

    def register(self, tables: range) -> None:
        """Do nothing."""

    def resolve(self, ts: Ts) -> None:
        """Do nothing."""

    def remove(self) -> None:
        """Do nothing."""

    def one(self, ts: int) -> None:
        change = KvChange(ts, ts - 1, PUT, b"k" * 40, b"v" * 150)
        self._yardstick.write(Window({0: [change]}, ts))
        self._yardstick.fetch(self._tables, ts - 1, ts)

    def close(self) -> dict[str, object]:
        self._yardstick.close()
        return {}


def _throughput(subject: Ours | Theirs, windows: list[Window], mode: str) -> dict[str, object]:
    count = sum(len(changes) for window in windows for changes in window.tables.values())
    subject.prepare(windows)  # the input is created before: its creation shouldn't count
    gc.collect()
    gc.freeze()
    before, used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, process_time()
    seconds = {}
    for phase in ("write", "fetch") if mode != "both" else ("both",):
        work: Callable[[list[Window]], None] = getattr(subject, phase)
        started = _now()
        work(windows)
        seconds[phase] = _now() - started
    used = process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gc.unfreeze()
    if len(seconds) > 1:
        seconds["write_fetch"] = sum(seconds.values())
    return {
        **{phase: round(count / s / 1e6, 3) for phase, s in seconds.items()},
        "cpu_seconds": round(used, 2),
        "peak_rss_above_input_mb": (peak - before) >> 10,
        **subject.close(),
    }


def _tables(subject: Ours | Theirs, events: int, tables: int) -> dict[str, object]:
    windows = w1_by_table(tables, events // tables)
    subject.prepare(windows)
    gc.collect()
    gc.freeze()
    figures: dict[str, object] = {}

    def timed(name: str, work: Callable[..., None], *args: object) -> None:
        started = _now()
        work(*args)
        figures[name] = round(_now() - started, 3)

    before = _rss()
    timed("register_seconds", subject.register, range(tables))
    figures["bytes_per_table"] = (_rss() - before) // tables
    timed("write_seconds", subject.write, windows)
    timed("fetch_seconds", subject.fetch, windows)
    timed("resolve_seconds", subject.resolve, windows[-1].resolved + 1)
    figures["threads"] = active_count()
    used = process_time()
    Event().wait(1.0)
    figures["idle_cpu"] = round(process_time() - used, 4)
    timed("remove_seconds", subject.remove)
    gc.unfreeze()
    subject.close()
    return figures


def _rss() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def process_time() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _latency(subject: Ours | Theirs) -> dict[str, object]:
    taken = []
    never = Event()
    for n in range(600):
        never.wait(IDLE_SECONDS)
        started = _now()
        subject.one(FIRST_TS + 10 * (n + 1))
        taken.append((_now() - started) * 1e3)
    taken = sorted(taken[100:])
    subject.close()
    return {"p50": round(taken[250], 4), "p99": round(taken[495], 4)}


def _ratios(figures: dict[str, Any], yardstick: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return the ratios: above 1 is better than the yardstick; those without a suffix are to one put per
    event."""
    ratios = {}
    for kind, theirs in yardstick.items():
        suffix = "" if kind == "one_put" else f"_{kind}"
        for name in RATES:
            if name in figures:
                ratios[name + suffix] = round(figures[name] / theirs[name], 2)
        for name in ("p50", "p99", "cpu_seconds", "write_seconds"):
            if figures.get(name):
                ratios[name + suffix] = round(theirs[name] / figures[name], 2)
    return ratios
