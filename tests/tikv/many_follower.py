"""A feed of very many tables in a process of its own, which says what it takes.

As a program it takes the feed's tables as JSON, and answers each line with a line of JSON: how many rows have
come, and what the process takes.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import CDLL
from pathlib import Path
from threading import active_count
from time import monotonic, process_time, time
from typing import Any

from msgspec import Struct
from msgspec import json as msgspec_json

from tidemill.engine.feed import Feed
from tidemill.engine.opening import checkpoint_file
from tidemill.engine.options import feed_options
from tidemill.events import Item, Transaction, physical_ms
from tidemill.sink.python import python_sink

malloc_trim = CDLL(None).malloc_trim


class Taken(Struct):
    """The resources that a process has used so far."""

    rows: int
    lag_seconds: float
    """The most that a row was behind its commit since the last look. No table can be further behind: nothing
    leaves before all tables are resolved so far."""
    resident_bytes: int
    threads: int
    turns: int
    """Turns of all actors."""
    cpu_seconds: float
    seconds: float
    error: str = ""


class Following:
    """Such a process, from the outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def look(self) -> Taken:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        taken = msgspec_json.decode(self._process.stdout.readline(), type=Taken)
        assert not taken.error, taken.error
        return taken


@contextmanager
def following_many(options: dict[str, Any]) -> Iterator[Following]:
    with subprocess.Popen(
        [sys.executable, __file__, json.dumps(options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Following(process)
        finally:
            process.kill()


class Taker:
    def __init__(self, options: dict[str, Any]) -> None:
        found = feed_options(options)
        self._rows = 0
        self._lag = 0.0
        self._feed = Feed(found, [python_sink("python", self._receive, checkpoint_file(found, "python"))])
        gc.collect()
        self._before = resident_bytes()
        self._feed.start()

    def _receive(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Transaction) and item.rows:
                self._rows += len(item.rows)
                self._lag = max(self._lag, time() - physical_ms(item.commit_ts) / 1000)

    def look(self) -> Taken:
        lag, self._lag = self._lag, 0.0
        pipeline = self._feed._live.pipeline
        actors = () if pipeline is None else pipeline.stages.compute.statistics().actors
        return Taken(
            self._rows,
            lag,
            resident_bytes() - self._before,
            active_count(),
            sum(actor.polls for actor in actors),
            process_time(),
            monotonic(),
            "" if self._feed.error is None else str(self._feed.error),
        )


def resident_bytes() -> int:
    """Return what the process has in memory, without what its allocator keeps of freed memory."""
    malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> None:
    taker = Taker(json.loads(sys.argv[1]))
    for _ in sys.stdin:
        sys.stdout.write(msgspec_json.encode(taker.look()).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
