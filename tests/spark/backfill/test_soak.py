"""Five million rows, written to all the while, through a kill, to the same rows at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidemill.spark.backfill.backfill import backfill
from tidemill.spark.backfill.options import BackfillOptions
from tidemill.spark.backfill.progress import BackfillProgress
from tidemill.testing.mariadb_client import Client

from .world import (
    Writer,
    create_tables,
    eventually,
    finished,
    go_on,
    into_copy,
    load,
    processes,
    rows,
    workers,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = int(os.environ.get("TIDEMILL_SOAK_ROWS", "5000000"))
CHUNK_ROWS = max(1_000, ROWS // 50)
WORKER_BYTES = 400 << 20
"""Maximum memory of a worker for any chunk; pyspark, pyarrow and tidemill take about 150 MiB of it."""
MINUTES = 40 * 60.0


@pytest.mark.soak
def test_five_million_rows_that_change_meanwhile_are_the_same_at_the_end(
    spark: SparkSession, own: Client, tmp_path: Path
) -> None:
    create_tables(own, ROWS)
    server, tables, directory = own.server, f"{own.database}.*", tmp_path / "bf"
    peaks: list[int] = []
    told: list[BackfillProgress] = []

    def report(progress: BackfillProgress) -> None:
        told.append(progress)
        peaks.extend(map(peak, workers(spark)))

    options = into_copy(server.url(), server, tables, "copy", tmp_path / "state")
    with Writer(server, own.database, ROWS) as writer:
        killed = driver(server.url(), tables, directory, tmp_path / "driver.log")
        there = finished(directory)
        before = writer.transactions
        source = {"source": server.url(), "tables": tables}
        done = backfill(spark, source, directory, BackfillOptions(chunk_rows=CHUNK_ROWS), report)
        meanwhile = writer.transactions - before
        load(done, options)
    assert killed
    assert len(there) <= told[0].chunks < told[0].chunks_in_all
    assert meanwhile > ROWS // 10_000
    go_on(options)
    assert max(peaks) < WORKER_BYTES
    assert summed(own, own.database) == summed(own, "copy")
    for table in ("w", "k"):
        assert rows(server, "copy", table) == rows(server, own.database, table)


def driver(url: str, tables: str, directory: Path, log: Path) -> bool:
    """Begins a backfill and kills it after some of its chunks; whether it was in the middle of it."""
    command = [sys.executable, str(Path(__file__).with_name("driver.py"))]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, url, tables, str(directory), str(CHUNK_ROWS)],
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        eventually(lambda: directory.is_dir() and len(finished(directory)) >= 10, MINUTES)
        in_the_middle = process.poll() is None
        process.kill()
        process.wait()
        eventually(lambda: not processes(process.pid))
    finally:
        for left in processes(process.pid):
            os.kill(left, signal.SIGKILL)
    return in_the_middle


def peak(pid: int) -> int:
    """The most memory that the process has had."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in text.splitlines() if line[:6] == "VmHWM:"), 0)


def summed(sql: Callable[..., Any], database: str) -> Any:
    """Says of all rows of `a` whether they are the same, without fetching them."""
    values = "CONCAT_WS('#', id, n, IFNULL(s, '~'), p, d, f, t, HEX(b))"
    return sql(f"SELECT COUNT(*), BIT_XOR(CRC32({values})), SUM(CRC32({values})) FROM {database}.a")
