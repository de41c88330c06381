"""Entries of several sources, each with a thread, merged by time: the queue, beside the barrier.

The entries of the sources alternate, which is the barrier's worst case and the usual one for shards.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from threading import Thread
from typing import Any

from ..timeline import Entry, GroupOptions, Merge, open_group

SOURCES = ("a", "b", "c", "d")
_BATCH = 100


def run(*, entries: int = 200_000, barrier_entries: int = 4_000, rounds: int = 3) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share: entries a second of all sources together."""
    queued, passed, ratios = [], [], []
    for _ in range(rounds):
        queue, barrier = _measure("queue", entries), _measure("barrier", barrier_entries)
        queued.append(queue)
        passed.append(barrier)
        ratios.append(queue / barrier)
    return {
        "bench": "merge",
        "settings": {"entries": entries, "barrier_entries": barrier_entries, "sources": len(SOURCES)},
        "figures": {"entries_per_second": round(statistics.median(queued))},
        "yardstick": {"entries_per_second": round(statistics.median(passed))},
        "ratio": {"entries_per_second": round(statistics.median(ratios), 1)},
    }


def _measure(merge: Merge, count: int) -> float:
    each = count // len(SOURCES)
    last = 0
    entries_read = 0

    def consume(entries: Sequence[tuple[str, Entry]]) -> int:
        nonlocal last, entries_read
        for _, entry in entries:
            if entry.ts < last:
                raise RuntimeError(f"{entry.ts} came after {last}")
            last = entry.ts
        entries_read += len(entries)
        return len(entries)

    group = open_group(SOURCES, consume, GroupOptions(merge=merge), time.monotonic)

    def send(number: int) -> None:
        source = SOURCES[number]
        batches = [
            [Entry(n * len(SOURCES) + number, "whole", n) for n in range(begin, min(each, begin + _BATCH))]
            for begin in range(0, each, _BATCH)
        ]
        for batch in batches:
            group.sink(source, batch)
        group.leave(source)

    threads = [Thread(target=send, args=(number,)) for number in range(len(SOURCES))]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    if entries_read != each * len(SOURCES):
        raise RuntimeError(f"{entries_read} of {each * len(SOURCES)} entries arrived")
    return entries_read / seconds
