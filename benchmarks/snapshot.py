"""The first snapshot of four MariaDB tables into Python, rows a second.

Measured with the log waiting (`consistent`), with one worker and with the default number of them, against a
plain SELECT of all columns through pymysql's SSCursor on one connection (`select`), in turn.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path

import pymysql

from ..embedded import follow
from ..events import Transaction
from ..puller.mysql.options import MysqlOptions
from ..testing.mariadb import MariaDb
from .in_turn import medians
from .mysql import fill

TABLES = ("one", "two", "three", "four")
_WORKERS = {"consistent": 0, "one_worker": 1, "workers": MysqlOptions().snapshot_workers}


def run(*, rows: int = 100_000, rounds: int = 3) -> dict[str, object]:
    """Return one result in the form that all benchmarks share; `rows` is the number for each table."""
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder,
        MariaDb(Path(folder) / "mariadb") as server,
    ):
        for table in TABLES:
            fill(server, table, rows)
        count = rows * len(TABLES)
        works = {
            name: partial(_snapshot, server, Path(folder), workers, count)
            for name, workers in _WORKERS.items()
        }
        seconds = medians({**works, "select": partial(_select, server, count)}, rounds)
    figures = {name: count / taken for name, taken in seconds.items()}
    select = figures.pop("select")
    return {
        "bench": "snapshot",
        "settings": {"rows": rows, "tables": len(TABLES), "rounds": rounds, **_WORKERS},
        "figures": figures,
        "yardstick": dict.fromkeys(figures, select),
        "ratio": {name: figure / select for name, figure in figures.items()},
    }


def _snapshot(server: MariaDb, folder: Path, workers: int, rows: int) -> float:
    """Return the seconds from the start until all rows have arrived as values."""
    count = 0
    last = 0.0

    def receive(txn: Transaction) -> None:
        nonlocal count, last
        count += len(txn.rows)
        last = time.perf_counter()

    begun = time.perf_counter()
    follow(
        receive,
        server.url(),
        ["bench.*"],
        data_dir=tempfile.mkdtemp(dir=folder),
        until="now",
        source_options={"snapshot_workers": workers},
    )
    if count != rows:
        raise RuntimeError(f"{count} rows arrived of {rows}")
    return last - begun


def _select(server: MariaDb, rows: int) -> float:
    begun = time.perf_counter()
    count = 0
    with server.connect(cursorclass=pymysql.cursors.SSCursor) as connection, connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"SELECT * FROM bench.{table}")
            count += sum(1 for _ in cursor)
    if count != rows:
        raise RuntimeError(f"{count} rows were selected of {rows}")
    return time.perf_counter() - begun
