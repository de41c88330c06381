"""MariaDB to Python and to another MariaDB, each compared with a yardstick in the same run.

* `follow_large`, `follow_small`: the whole pipeline into a Python callback, rows a second, against the
  library mysql-replication reading the same log to Python values; transactions of 1,000 rows and of one.
* `latency`: from the commit to the callback on an idle stream, against a bare blocking reader of the
  same events.
* `snapshot`: a table into another schema of the server, against `mariadb-dump | mariadb`.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import HeartbeatLogEvent
from pymysqlreplication.row_event import WriteRowsEvent

from ..embedded import follow
from ..engine.feed import Feed
from ..engine.opening import checkpoint_file, open_sinks
from ..engine.options import feed_options
from ..events import Item, Row, Transaction, row_count
from ..sink.python import python_sink
from ..testing.feed_run import run as run_feed
from ..testing.mariadb import PASSWORD, MariaDb
from .in_turn import median_pairs, seconds_of

COLUMNS = (
    "id INT NOT NULL PRIMARY KEY, big BIGINT UNSIGNED, price DECIMAL(12,2), ratio DOUBLE,"
    " name VARCHAR(60), at DATETIME, flag TINYINT, note TEXT"
)
_numbers = count(1)
"""Numbers of snapshots, each of which has a target of its own."""


def run(
    *, large_rows: int = 200_000, small_rows: int = 30_000, snapshot_rows: int = 200_000, rounds: int = 3
) -> dict[str, object]:
    """Return one result in the form that all benchmarks share; a ratio above 1 is better than the
    yardstick."""
    figures: dict[str, float] = {}
    yardstick: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder,
        MariaDb(Path(folder) / "mariadb") as server,
    ):
        create_tables(server)
        for name, rows, size in (("large", large_rows, 1_000), ("small", small_rows, 1)):
            span = write_rows(server, rows, size)  # at the log's end: a puller reads on while it is stopped
            pair = (
                partial(_follow, server, Path(folder), span, rows),
                partial(_read_with_library, server, span, rows),
            )
            ours, theirs = median_pairs({name: pair}, rounds)[name]
            figures[f"follow_{name}"], yardstick[f"follow_{name}"] = rows / ours, rows / theirs
        ours, theirs = _latencies(server, Path(folder))
        figures["latency_ms"], yardstick["latency_ms"] = 1e3 * ours, 1e3 * theirs
        fill(server, "loaded", snapshot_rows)
        pair = partial(_snapshot, server, Path(folder)), partial(_dump_and_load, server)
        ours, theirs = median_pairs({"snapshot": pair}, rounds)["snapshot"]
        figures["snapshot"], yardstick["snapshot"] = snapshot_rows / ours, snapshot_rows / theirs
    ratio = {name: figures[name] / yardstick[name] for name in figures if name != "latency_ms"}
    ratio["latency"] = yardstick["latency_ms"] / figures["latency_ms"]
    settings = {"large_rows": large_rows, "small_rows": small_rows, "snapshot_rows": snapshot_rows}
    return {
        "bench": "mysql",
        "settings": {**settings, "rounds": rounds},
        "figures": figures,
        "yardstick": yardstick,
        "ratio": ratio,
    }


# --- following -----------------------------------------------------------------------------------


def create_tables(server: MariaDb) -> None:
    server.execute(
        "CREATE DATABASE bench",
        *(f"CREATE TABLE bench.{name} ({COLUMNS})" for name in ("followed", "idle")),
    )


def _row(key: int) -> Row:
    moment = f"2026-03-0{key % 9 + 1} 04:05:06"
    return (key, 2**63 + key, f"{key % 10_000}.25", key / 7, f"name of {key}", moment, key % 100, "n" * 40)


def write_rows(server: MariaDb, rows: int, size: int) -> tuple[str, str]:
    """Write rows in transactions of `size`; return the positions before and after."""
    marks = ",".join(["%s"] * 8)
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        start = log_end(cursor)
        for first in range(0, rows, size):
            keys = range(first, min(rows, first + size))
            cursor.executemany(
                f"REPLACE INTO bench.followed VALUES ({marks})",
                [_row(1_000_000 * size + key) for key in keys],
            )
            connection.commit()
        return start, log_end(cursor)


def log_end(cursor: Any) -> str:
    cursor.execute("SHOW MASTER STATUS")
    file, offset = cursor.fetchone()[:2]
    return f"{file}:{offset}"


def _follow(server: MariaDb, folder: Path, span: tuple[str, str], rows: int) -> float:
    """Return the seconds from the first row to the last, through the whole pipeline."""
    count = 0
    first = last = 0.0

    def receive(txn: Transaction) -> None:
        nonlocal count, first, last
        if not count:
            first = time.perf_counter()
        for _ in txn.rows:
            count += 1
        last = time.perf_counter()

    start, end = span
    follow(
        receive,
        server.url(),
        ["bench.followed"],
        data_dir=tempfile.mkdtemp(dir=folder),
        until=end,
        source_options={"snapshot": False, "position": start},
    )
    if count != rows:
        raise RuntimeError(f"{count} rows arrived, {rows} were written")
    return last - first


def _library(server: MariaDb, position: str, **options: object) -> BinLogStreamReader:
    file, _, offset = position.rpartition(":")
    return BinLogStreamReader(
        connection_settings={"host": server.host, "port": server.port, "user": "root", "passwd": PASSWORD},
        log_file=file,
        log_pos=int(offset),
        resume_stream=True,
        enable_logging=False,
        **options,
    )


def _read_with_library(server: MariaDb, span: tuple[str, str], rows: int) -> float:
    stream = _library(server, span[0], server_id=77_001, blocking=False, only_events=[WriteRowsEvent])
    count, first, last = 0, 0.0, 0.0
    for event in stream:
        if not count:
            first = time.perf_counter()
        count += len(event.rows)
        last = time.perf_counter()
        if count >= rows:
            break
    stream.close()
    return last - first


# --- latency -------------------------------------------------------------------------------------


def _latencies(server: MariaDb, folder: Path, commits: int = 300) -> tuple[float, float]:
    """Return the median seconds from before a commit to the row's arrival, of tidemill and of a bare
    reader."""
    return _latency_of_feed(server, folder, commits), _latency_of_reader(server, commits)


def _commit_one_by_one(server: MariaDb, commits: int, arrived: Sequence[float], first: int) -> float:
    with server.connect() as connection, connection.cursor() as cursor:
        marks = ",".join(["%s"] * 8)
        begun = []
        for number in range(commits):
            begun.append(time.perf_counter())
            cursor.execute(f"INSERT INTO bench.idle VALUES ({marks})", _row(first + number))
            while len(arrived) <= number:
                time.sleep(0.0005)
            time.sleep(0.003)
    taken = [end - here for here, end in zip(begun, arrived, strict=True)]
    return statistics.median(taken[commits // 10 :])


def _latency_of_feed(server: MariaDb, folder: Path, commits: int) -> float:
    arrived: list[float] = []
    with server.connect() as connection, connection.cursor() as cursor:
        start = log_end(cursor)

    options = feed_options(
        {
            "data_dir": str(folder / "latency"),
            "source": {
                "url": server.url(),
                "tables": ["bench.idle"],
                "snapshot": False,
                "position": start,
            },
        }
    )

    def receive(items: Sequence[Item]) -> None:
        arrived.extend([time.perf_counter()] * row_count(items))

    store = checkpoint_file(options, "python")
    feed = Feed(options, [python_sink("python", receive, store)])
    feed.start()
    try:
        return _commit_one_by_one(server, commits, arrived, 0)
    finally:
        feed.stop()
        feed.wait()


def _latency_of_reader(server: MariaDb, commits: int) -> float:
    """Return the same of the library's own connection, read by a blocking thread; nothing is decoded."""
    arrived: list[float] = []
    ready = Event()
    with server.connect() as connection, connection.cursor() as cursor:
        end = log_end(cursor)
    stream = _library(
        server, end, server_id=77_002, blocking=True, slave_heartbeat=0.05, only_events=[HeartbeatLogEvent]
    )

    def read() -> None:
        stream.fetchone()  # the first read connects and returns a heartbeat
        ready.set()
        connection = stream._stream_connection
        while len(arrived) < commits:
            payload = connection._read_packet()._data
            if payload[5] in (23, 30):  # after the status byte and timestamp: the event's type
                arrived.append(time.perf_counter())

    thread = Thread(target=read)
    thread.start()
    ready.wait()
    result = _commit_one_by_one(server, commits, arrived, commits)
    thread.join()
    stream.close()
    return result


# --- the snapshot --------------------------------------------------------------------------------


def fill(server: MariaDb, table: str, rows: int) -> None:
    """Create a table of COLUMNS in the schema `bench`, with the rows of the ids 1 to `rows`."""
    server.execute(
        "CREATE DATABASE IF NOT EXISTS bench",
        "USE bench",
        f"CREATE TABLE {table} ({COLUMNS})",
        *(
            f"INSERT INTO {table} SELECT seq, 9223372036854775808 + seq, seq % 10000 + 0.25, seq / 7,"
            " CONCAT('name of ', seq), '2026-03-01 04:05:06' + INTERVAL seq SECOND, seq % 100,"
            f" REPEAT('n', 40) FROM seq_{first}_to_{min(rows, first + 99_999)}"
            for first in range(1, rows + 1, 100_000)
        ),
    )


def _snapshot(server: MariaDb, folder: Path) -> float:
    number = next(_numbers)
    options = feed_options(
        {
            "name": f"snapshot-{number}",
            "data_dir": str(folder / f"snapshot-{number}"),
            "until": "now",
            "source": {"url": server.url(), "tables": ["bench.loaded"]},
            "sink": [{"url": server.url(f"copy_{number}", scheme="mysql+pymysql")}],
        }
    )
    feed = Feed(options, open_sinks(options))
    return seconds_of(lambda: run_feed(feed))


def _dump_and_load(server: MariaDb) -> float:
    server.execute("DROP DATABASE IF EXISTS dumped", "CREATE DATABASE dumped")
    login = [f"--host={server.host}", f"--port={server.port}", "--user=root", f"--password={PASSWORD}"]
    dump = [shutil.which("mariadb-dump") or "mariadb-dump", *login, "--single-transaction", "bench", "loaded"]
    load = [shutil.which("mariadb") or "mariadb", *login, "dumped"]
    begun = time.perf_counter()
    with subprocess.Popen(dump, stdout=subprocess.PIPE) as dumping:
        subprocess.run(load, stdin=dumping.stdout, check=True)
    return time.perf_counter() - begun
