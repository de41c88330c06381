"""A feed of very many tables: its start, one ALTER of each table while rows are written, and its restart.

* `start_seconds`: until all rows of the first snapshot, two a table, have arrived.
* `ddl_per_second`: ALTERs as fast as the server takes them; `lag_seconds` is the longest time from a commit
  to its row's arrival meanwhile, `caught_up_seconds` that from the last ALTER until it is below a second.
* `restart_seconds`: until the first new row arrives.
* `memory_mib`: what this process has grown by; `catalog_mib`: the file of the catalog.

The yardstick reads every table's definition and rows by a statement each, with plain pymysql.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

from ..engine.feed import Feed
from ..engine.opening import checkpoint_file
from ..engine.options import feed_options
from ..events import Item, Transaction
from ..sink.python import python_sink
from ..testing.mariadb import MariaDb

_WAIT_SECONDS = 1800.0
_FIRST_KEY = 1_000_000


def run(*, tables: int = 10_000, writes_per_second: int = 50) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share."""
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
        MariaDb(Path(name, "mariadb"), "--table-open-cache=4000", "--innodb-file-per-table=0") as server,
    ):
        _create(server, tables)
        plain = _read_plainly(server, tables)
        gc.collect()
        before = _resident_mib()
        feed = _Run(server, Path(name, "feed"))
        start = feed.wait_for(2 * tables)
        writer = _Writer(server, writes_per_second)
        ddl = _alter_each(server, tables)
        after = time.perf_counter()
        feed.wait_until_lag(writer, 1.0)
        caught_up = time.perf_counter() - after
        memory = _resident_mib() - before
        writer.stop()
        feed.wait_for(2 * tables + writer.written)
        lag = max(feed.arrived[key] - begun for key, begun in writer.begun.items())
        feed.stop()
        catalog = sum(path.stat().st_size for path in Path(name, "feed").glob("*catalog"))
        _write(server, 1)
        feed = _Run(server, Path(name, "feed"))
        restart = feed.wait_for(1)
        feed.stop()
    figures = {
        "start_seconds": start,
        "ddl_per_second": tables / ddl,
        "lag_seconds": lag,
        "caught_up_seconds": caught_up,
        "restart_seconds": restart,
        "memory_mib": memory,
        "catalog_mib": catalog / 2**20,
    }
    return {
        "bench": "catalog",
        "settings": {"tables": tables, "writes_per_second": writes_per_second},
        "figures": {name: round(figure, 2) for name, figure in figures.items()},
        "yardstick": {"read_seconds": round(plain, 2)},
        "ratio": {"start": round(plain / start, 3), "restart": round(plain / restart, 3)},
    }


class _Run:
    """One run of the feed."""

    def __init__(self, server: MariaDb, folder: Path) -> None:
        self.arrived: dict[int, float] = {}
        self._rows = 0
        self._came = Event()
        options = feed_options(
            {"data_dir": str(folder), "source": {"url": server.url(), "tables": ["bench.*"]}}
        )
        store = checkpoint_file(options, "python")
        sink = python_sink("python", self._receive, store)
        self._begun = time.perf_counter()
        self._feed = Feed(options, [sink])
        self._feed.start()

    def wait_for(self, rows: int) -> float:
        """Return the seconds from the start until `rows` rows have arrived."""
        self._wait_until(lambda: self._rows >= rows, f"there are no {rows} rows")
        return self._last - self._begun

    def wait_until_lag(self, writer: _Writer, seconds: float) -> None:
        """Wait until a row arrives within so many seconds of its commit."""
        begun = time.perf_counter()

        def is_near() -> bool:
            last = list(self.arrived.items())[-20:]
            return any(time > begun and time - writer.begun[key] < seconds for key, time in last)

        self._wait_until(is_near, "the feed doesn't catch up")

    def _wait_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Wait for rows until `condition` is true. Raises the feed's error, and RuntimeError if it stalls."""
        end = time.perf_counter() + _WAIT_SECONDS
        while not condition():
            if self._feed.error is not None:
                raise self._feed.error
            if time.perf_counter() > end:
                raise RuntimeError(f"{otherwise}: {self._rows} rows arrived")
            self._came.wait(0.1)
            self._came.clear()

    def stop(self) -> None:
        self._feed.stop()
        self._feed.wait()
        if self._feed.error is not None:
            raise self._feed.error

    def _receive(self, items: Sequence[Item]) -> None:
        self._last = now = time.perf_counter()
        for item in items:
            if isinstance(item, Transaction):
                for row in item.rows:
                    if row.after and row.after[0] >= _FIRST_KEY:
                        self.arrived[row.after[0]] = now
                self._rows += len(item.rows)
        self._came.set()


class _Writer:
    """Writes rows one by one, and notes when."""

    def __init__(self, server: MariaDb, per_second: int) -> None:
        self.begun: dict[int, float] = {}
        self._server = server
        self._pause = 1 / per_second
        self._stopped = Event()
        self._thread = Thread(target=self._run)
        self._thread.start()

    @property
    def written(self) -> int:
        return len(self.begun)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        with self._server.connect() as connection, connection.cursor() as cursor:
            while not self._stopped.wait(self._pause):
                key = _FIRST_KEY + len(self.begun)
                self.begun[key] = time.perf_counter()
                cursor.execute("INSERT INTO bench.written VALUES (%s, 'a name')", (key,))


def _create(server: MariaDb, tables: int) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench")
        cursor.execute("CREATE TABLE bench.written (id INT PRIMARY KEY, name VARCHAR(40))")
        for number in range(tables):
            cursor.execute(
                f"CREATE TABLE bench.t{number} (id INT PRIMARY KEY, name VARCHAR(40), at DATETIME, "
                "price DECIMAL(12,2), KEY (name))"
            )
            cursor.execute(f"INSERT INTO bench.t{number} VALUES (1, 'a', NULL, 1.5), (2, 'b', NULL, 2.5)")


def _read_plainly(server: MariaDb, tables: int) -> float:
    with server.connect() as connection, connection.cursor() as cursor:
        begun = time.perf_counter()
        for number in range(tables):
            cursor.execute(f"SHOW CREATE TABLE bench.t{number}")
            cursor.fetchall()
            cursor.execute(f"SELECT * FROM bench.t{number}")
            cursor.fetchall()
        return time.perf_counter() - begun


def _alter_each(server: MariaDb, tables: int) -> float:
    with server.connect() as connection, connection.cursor() as cursor:
        begun = time.perf_counter()
        for number in range(tables):
            cursor.execute(f"ALTER TABLE bench.t{number} ADD COLUMN more INT")
        return time.perf_counter() - begun


def _write(server: MariaDb, key: int) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO bench.written VALUES (%s, 'after the stop')", (key,))


def _resident_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
