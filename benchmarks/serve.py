"""A feed's throughput beside clients of its HTTP server, and without them, in turn.

MariaDB's log is followed into a Python callback that reads every row. The clients are another process, of the
lowest priority, as those of another machine take no CPU time here: event streams that are all read, and
requests of the API at a steady rate, over connections that are kept. `beside_clients` is the feed's
throughput, `cpu` the rows per second of CPU time of the process with the feed and the server, and
`requests_ms_p99` the latency of the requests.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ..actors import SystemClock
from ..engine.feed import Feed
from ..engine.opening import checkpoint_file
from ..engine.options import feed_options
from ..events import Item, Transaction
from ..server.asgi import application
from ..server.hosted import GivenFeed
from ..server.registry import Registry
from ..server.security import Access
from ..server.serving import HttpServer
from ..sink.python import python_sink
from ..testing.feed_run import run as run_feed
from ..testing.mariadb import MariaDb
from .in_turn import Taken
from .mysql import create_tables, log_end


def run(
    *,
    rows: int = 4_000_000,
    requests: int = 2_000,
    per_second: int = 200,
    streams: int = 200,
    rounds: int = 3,
) -> dict[str, object]:
    """Return one result in the form that all benchmarks share; the yardstick is the feed alone."""
    load = (requests, per_second, streams)
    alone, beside, answered = [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder,
        MariaDb(Path(folder) / "mariadb") as server,
    ):
        create_tables(server)
        span = _write(server, rows)
        for number in range(rounds):
            alone.append(_follow(server, Path(folder) / f"alone-{number}", span, rows, None, []))
            done: list[dict[str, Any]] = []
            beside.append(_follow(server, Path(folder) / f"beside-{number}", span, rows, load, done))
            answered.append(done[0])
    figures, yardstick = _throughput(rows, beside), _throughput(rows, alone)
    return {
        "bench": "serve",
        "settings": {
            "rows": rows,
            "requests": requests,
            "per_second": per_second,
            "streams": streams,
            "rounds": rounds,
        },
        "figures": {
            **figures,
            "requests_ms_p99": statistics.median(one["ms_p99"] for one in answered),
            "requests": statistics.median(one["requests"] for one in answered),
        },
        "yardstick": yardstick,
        "ratio": {name: figures[name] / yardstick[name] for name in figures},
    }


def _throughput(rows: int, times: Sequence[Taken]) -> dict[str, float]:
    return {
        "beside_clients": rows / statistics.median(one.clock for one in times),
        "cpu": rows / statistics.median(one.cpu for one in times),
    }


def _write(server: MariaDb, rows: int) -> tuple[str, str]:
    """Write rows in transactions of 1,000; return the positions before and after."""
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        start = log_end(cursor)
        for first in range(0, rows, 1_000):
            cursor.execute(
                f"INSERT INTO bench.followed SELECT seq + {first}, (1 << 63) + seq, seq + 0.25, seq / 7,"
                " CONCAT('name of ', seq), '2026-03-01 04:05:06', seq % 100, REPEAT('n', 40)"
                " FROM bench.seq_1_to_1000"
            )
        return start, log_end(cursor)


def _follow(
    server: MariaDb,
    folder: Path,
    span: tuple[str, str],
    rows: int,
    load: tuple[int, int, int] | None,
    done: list[dict[str, object]],
) -> Taken:
    """Return the times of one run; `done` gets the clients' result."""
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
    count = 0
    first = last = Taken(0.0, 0.0)

    def receive(items: Sequence[Item]) -> None:
        nonlocal count, first, last
        if not count:
            first = Taken.now()
        for item in items:
            if isinstance(item, Transaction):
                for _ in item.rows:
                    count += 1
        last = Taken.now()

    feed = Feed(options, [python_sink("python", receive, checkpoint_file(options, "python"))])
    clock = SystemClock()
    registry = Registry([GivenFeed(feed, {}, clock)], clock=clock)
    http = HttpServer(application(registry, Access()), "127.0.0.1:0")
    with closing(http), registry, http, _clients(http.url, load, done):
        run_feed(feed)
    if count != rows:
        raise RuntimeError(f"{count} rows arrived, {rows} were written")
    return last.since(first)


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
