"""Rows of a MariaDB into sorted files by Spark, and from these files into a DataFrame.

The figures are rows per second:

* `rows`: a backfill, from the call to the manifest: planning, reading and checking for changes meanwhile
  (there are none). The yardstick is plain pymysql in the same number of processes.
* `backfill`: the same against Spark's JDBC reader, which reads the table by a task for each chunk into the
  `noop` sink. `frame`: the raw envelope of the files into that sink, against the same; `frame_exact`: without
  the images as JSON. Left out if `build/jdbc` has no driver (`tests/services/jdbc`).

Spark's session and workers are started before, as are the processes of pymysql.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import pymysql

from ..testing.mariadb import PASSWORD, MariaDb
from .mysql import fill
from .spark_jdbc import driver, jdbc, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FEW: Final = 1_000
"""Rows of the first round, which starts workers and processes."""


def run(
    *, rows: int = 1_000_000, chunk_rows: int = 100_000, processes: int = 2, rounds: int = 3
) -> dict[str, object]:
    """Return one result in the form that all benchmarks share."""
    from .. import spark as tidemill_spark

    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name:
        folder = Path(name)
        with MariaDb(folder / "mariadb", "--innodb-buffer-pool-size=512M") as server:
            fill(server, "loaded", rows)
            fill(server, "few", _FEW)
            config = {"spark.local.dir": str(folder / "local"), "spark.jars": driver()}
            spark = tidemill_spark.session("bench", f"local[{processes}]", config)
            try:
                with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
                    ways = _Ways(server, spark, pool, folder / "files", chunk_rows, processes)
                    ways.measure("few", _FEW)
                    ways.seconds.clear()
                    for _ in range(rounds):
                        ways.measure("loaded", rows)
            finally:
                spark.stop()
    pairs = {"rows": ("backfill", "pymysql")}
    if driver():
        pairs |= {name: (name, "jdbc") for name in ("backfill", "frame", "frame_exact")}
    seconds = {name: median(taken) for name, taken in ways.seconds.items()}
    figures = {name: rows / seconds[ours] for name, (ours, _) in pairs.items()}
    return {
        "bench": "backfill",
        "settings": {"rows": rows, "chunk_rows": chunk_rows, "processes": processes, "rounds": rounds},
        "figures": {**figures, "bytes_a_row": ways.size / rows, "chunks": ways.chunks},
        "yardstick": {name: rows / seconds[theirs] for name, (_, theirs) in pairs.items()},
        "ratio": {name: seconds[theirs] / seconds[ours] for name, (ours, theirs) in pairs.items()},
    }


class _Ways:
    """Measures all ways to read a table, in turn, so that drift of the machine affects each."""

    def __init__(
        self,
        server: MariaDb,
        spark: SparkSession,
        pool: ProcessPoolExecutor,
        directory: Path,
        chunk_rows: int,
        processes: int,
    ) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.size = self.chunks = 0
        self._server = server
        self._spark = spark
        self._pool = pool
        self._directory = directory
        self._chunk_rows = chunk_rows
        self._processes = processes

    def measure(self, table: str, rows: int) -> None:
        from ..spark.backfill.backfill import backfill
        from ..spark.backfill.options import BackfillOptions

        source = {"source": self._server.url(), "tables": f"bench.{table}"}
        with self._timed("backfill"):
            done = backfill(
                self._spark, source, self._directory, BackfillOptions(chunk_rows=self._chunk_rows)
            )
        self.size = sum(path.stat().st_size for path in self._directory.rglob("*.sst"))
        self.chunks = done.chunks
        if (count := done.frame(self._spark).where("op = 'insert'").count()) != rows:
            raise RuntimeError(f"{count} rows came of {rows}")
        for name, values in (("frame", "json"), ("frame_exact", "none")):
            with self._timed(name):
                write(done.frame(self._spark, values=values))
        shutil.rmtree(self._directory)
        if driver():
            with self._timed("jdbc"):
                write(jdbc(self._spark, self._server, f"bench.{table}", rows, self.chunks))
        with self._timed("pymysql"):
            self._fetch(table, rows, min(self._chunk_rows, rows // self._processes))

    def _fetch(self, table: str, rows: int, step: int) -> None:
        """Fetch all rows by pymysql: every process takes the next range of keys until there is none."""
        bounds = [*range(0, rows, step), rows]
        fetched = sum(self._pool.map(partial(_fetch_range, self._server.port, table), pairwise(bounds)))
        if fetched != rows:
            raise RuntimeError(f"{fetched} rows were fetched of {rows}")

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        self.seconds.setdefault(name, []).append(time.perf_counter() - begun)


def _fetch_range(port: int, table: str, bounds: tuple[int, int]) -> int:
    after, up_to = bounds
    with (
        pymysql.connect(host="127.0.0.1", port=port, user="root", password=PASSWORD) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        rows = f"bench.{table} FORCE INDEX (PRIMARY) WHERE id > {after} AND id <= {up_to}"
        cursor.execute(f"SELECT * FROM {rows} ORDER BY id")
        return len(cursor.fetchall())
