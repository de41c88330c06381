"""The first snapshot of four MariaDB tables into Python, rows a second.

Measured with the log waiting (`consistent`), with one worker and with the default number of them, against a
plain SELECT of all columns through pymysql's SSCursor on one connection (`select`), in turn.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import pymysql

from ..embedded import follow
from ..events import Transaction
from ..puller.mysql.options import MysqlOptions
from ..testing.mariadb import MariaDb
from .mysql import COLUMNS

TABLES = ("one", "two", "three", "four")
_WORKERS = {"consistent": 0, "one_worker": 1, "workers": MysqlOptions().snapshot_workers}


def run(*, rows: int = 100_000, rounds: int = 3) -> dict[str, object]:
    """Return one result in the form that all benchmarks share; `rows` is the number for each table."""
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder,
        MariaDb(Path(folder) / "mariadb") as server,
    ):
        _fill(server, rows)
        seconds: dict[str, list[float]] = {name: [] for name in (*_WORKERS, "select")}
        for number in range(rounds):
            for name, workers in _WORKERS.items():
                directory = Path(folder) / f"{name}-{number}"
                seconds[name].append(_snapshot(server, directory, workers, rows * len(TABLES)))
            seconds["select"].append(_select(server, rows * len(TABLES)))
    figures = {name: rows * len(TABLES) / statistics.median(taken) for name, taken in seconds.items()}
    select = figures.pop("select")
    return {
        "bench": "snapshot",
        "settings": {"rows": rows, "tables": len(TABLES), "rounds": rounds, **_WORKERS},
        "figures": figures,
        "yardstick": dict.fromkeys(figures, select),
        "ratio": {name: figure / select for name, figure in figures.items()},
    }


def _fill(server: MariaDb, rows: int) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench")
        cursor.execute("USE bench")
        for table in TABLES:
            cursor.execute(f"CREATE TABLE bench.{table} ({COLUMNS})")
            cursor.execute(
                f"INSERT INTO bench.{table} SELECT seq, 9223372036854775808 + seq, seq % 10000 + 0.25,"
                " seq / 7, CONCAT('name of ', seq), '2026-03-01 04:05:06' + INTERVAL seq SECOND, seq % 100,"
                f" REPEAT('n', 40) FROM seq_1_to_{rows}"
            )


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
        data_dir=folder,
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
