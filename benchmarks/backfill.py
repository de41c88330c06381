"""Rows of a MariaDB into sorted files by Spark, compared with plain pymysql in the same number of processes.

The figures are rows per second, from the call to the manifest: planning, reading and checking for changes
meanwhile (there are none). Spark's session and workers are started before, as are the processes of pymysql.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pymysql

from ..testing.mariadb import PASSWORD, MariaDb
from .mysql import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    *, rows: int = 1_000_000, chunk_rows: int = 100_000, processes: int = 2, rounds: int = 3
) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share."""
    from .. import spark as tidemill_spark

    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name:
        folder = Path(name)
        with MariaDb(folder / "mariadb", "--innodb-buffer-pool-size=512M") as server:
            _fill(server, rows)
            spark = tidemill_spark.session(
                "bench", f"local[{processes}]", {"spark.local.dir": str(folder / "local")}
            )
            try:
                with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
                    found = _in_turn(server, spark, pool, folder, rows, chunk_rows, processes, rounds)
            finally:
                spark.stop()
    ours, theirs, size, chunks = found
    return {
        "bench": "backfill",
        "settings": {"rows": rows, "chunk_rows": chunk_rows, "processes": processes, "rounds": rounds},
        "figures": {"rows": rows / ours, "bytes_a_row": size / rows, "chunks": chunks},
        "yardstick": {"rows": rows / theirs},
        "ratio": {"rows": theirs / ours},
    }


def _in_turn(
    server: MariaDb,
    spark: SparkSession,
    pool: ProcessPoolExecutor,
    folder: Path,
    rows: int,
    chunk_rows: int,
    processes: int,
    rounds: int,
) -> tuple[float, float, int, int]:
    """Return the median seconds of both, the size of the files in bytes, and the number of chunks."""
    ours, theirs = [], []
    for number in range(-1, rounds):  # the first one, of a few rows, starts workers and processes
        last = rows if number >= 0 else 1_000
        table = "loaded" if number >= 0 else "few"
        seconds, size, chunks = _backfill(server, spark, folder / f"files-{number}", table, chunk_rows)
        ours.append(seconds)
        theirs.append(_fetch(server, pool, table, last, min(chunk_rows, last // processes)))
    return median(ours[1:]), median(theirs[1:]), size, chunks


def _backfill(
    server: MariaDb, spark: SparkSession, directory: Path, table: str, chunk_rows: int
) -> tuple[float, int, int]:
    from ..spark.backfill.backfill import backfill
    from ..spark.backfill.options import BackfillOptions

    begun = time.perf_counter()
    source = {"source": server.url(), "tables": f"bench.{table}"}
    done = backfill(spark, source, directory, BackfillOptions(chunk_rows=chunk_rows))
    taken = time.perf_counter() - begun
    size = sum(path.stat().st_size for path in directory.rglob("*.sst"))
    shutil.rmtree(directory)
    return taken, size, done.chunks


def _fetch(server: MariaDb, pool: ProcessPoolExecutor, table: str, rows: int, step: int) -> float:
    """Fetch all rows: every process takes the next range of keys until there is none."""
    begun = time.perf_counter()
    bounds = [*range(0, rows, step), rows]
    fetched = sum(pool.map(partial(_fetch_range, server.port, table), pairwise(bounds)))
    if fetched != rows:
        raise RuntimeError(f"{fetched} rows were fetched of {rows}")
    return time.perf_counter() - begun


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


def _fill(server: MariaDb, rows: int) -> None:
    values = (
        "seq, 9223372036854775808 + seq, (seq % 10000) + 0.25, seq / 7, CONCAT('name of ', seq),"
        " '2026-03-04 04:05:06', seq % 100, REPEAT('n', 40)"
    )
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench")
        for table, count in (("loaded", rows), ("few", 1_000)):
            cursor.execute(f"CREATE TABLE bench.{table} ({COLUMNS})")
            for first in range(1, count + 1, 100_000):
                last = min(count, first + 99_999)
                cursor.execute(f"INSERT INTO bench.{table} SELECT {values} FROM bench.seq_{first}_to_{last}")
