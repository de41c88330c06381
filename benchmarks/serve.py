"""A feed's throughput beside clients of its HTTP server, and without them, in turn.

MariaDB's log is followed into a Python callback, as in the benchmark mysql. The clients are another process:
event streams that are all read, and requests of the API at a steady rate. `requests_ms_p99` is their latency.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ..actors import SystemClock
from ..engine.feed import Feed
from ..engine.opening import checkpoint_file
from ..engine.options import feed_options
from ..events import Item, row_count
from ..server.asgi import application
from ..server.hosted import GivenFeed
from ..server.registry import Registry
from ..server.security import Access
from ..server.serving import HttpServer
from ..sink.python import python_sink
from ..testing.mariadb import MariaDb
from .mysql import create_tables, write_rows


def run(
    *,
    rows: int = 1_000_000,
    requests: int = 2_000,
    per_second: int = 200,
    streams: int = 200,
    rounds: int = 3,
) -> dict[str, object]:
    """Return one result in the form that all benchmarks share; the yardstick is the feed alone."""
    alone, beside, latencies = [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder,
        MariaDb(Path(folder) / "mariadb") as server,
    ):
        create_tables(server)
        span = write_rows(server, rows, 1_000)
        for number in range(rounds):
            alone.append(rows / _follow(server, Path(folder) / f"alone-{number}", span, rows, None, []))
            load = (requests, per_second, streams)
            done: list[dict[str, Any]] = []
            beside.append(rows / _follow(server, Path(folder) / f"beside-{number}", span, rows, load, done))
            latencies.append(done[0]["ms_p99"])
    figures = {"beside_clients": statistics.median(beside)}
    yardstick = {"beside_clients": statistics.median(alone)}
    return {
        "bench": "serve",
        "settings": {
            "rows": rows,
            "requests": requests,
            "per_second": per_second,
            "streams": streams,
            "rounds": rounds,
        },
        "figures": {**figures, "requests_ms_p99": statistics.median(latencies)},
        "yardstick": yardstick,
        "ratio": {name: figures[name] / yardstick[name] for name in figures},
    }


def _follow(
    server: MariaDb,
    folder: Path,
    span: tuple[str, str],
    rows: int,
    load: tuple[int, int, int] | None,
    done: list[dict[str, object]],
) -> float:
    """Return the seconds from the first row to the last; `done` gets the clients' result."""
    start, end = span
    options = feed_options(
        {
            "data_dir": str(folder),
            "until": end,
            "source": {
                "url": server.url(),
                "tables": ["bench.followed"],
                "snapshot": False,
                "position": start,
            },
        }
    )
    count, first, last = 0, 0.0, 0.0

    def receive(items: Sequence[Item]) -> None:
        nonlocal count, first, last
        first = first or time.perf_counter()
        count += row_count(items)
        last = time.perf_counter()

    feed = Feed(options, [python_sink("python", receive, checkpoint_file(options, "python"))])
    clock = SystemClock()
    registry = Registry([GivenFeed(feed, {}, clock)], clock=clock)
    http = HttpServer(application(registry, Access()), "127.0.0.1:0")
    with closing(http), registry, http, _clients(http.url, load, done):
        feed.start()
        feed.wait()
    if feed.error is not None:
        raise feed.error
    if count != rows:
        raise RuntimeError(f"{count} rows arrived, {rows} were written")
    return last - first


@contextmanager
def _clients(url: str, load: tuple[int, int, int] | None, done: list[dict[str, object]]) -> Iterator[None]:
    """Run the clients beside the body; they are all connected when it begins."""
    if load is None:
        yield
        return
    command = [sys.executable, "-m", f"{__package__}.serve_clients", url, *map(str, load)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "connected\n":
            raise RuntimeError("the clients didn't connect")
        process.stdin.write("begin\n")
        process.stdin.flush()
        yield
        process.stdin.close()  # those requests that are left aren't sent
        done.append(json.loads(process.stdout.readline()))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
