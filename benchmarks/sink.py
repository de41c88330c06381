"""The SQL sinks alone, each compared with a plain yardstick with the same rows, in committed rows per second.

* `sqlite`: inserts, against `sqlite3.executemany` of the tuples that the sink makes of them.
* `mariadb`: inserts, against the client `mariadb` with a dump of the same rows by `mariadb-dump`.
* `mariadb_update`: an update of each row by its key, against the client with a file of UPDATEs.
* `postgres_load`: existing rows, against multi-row INSERTs of plain psycopg.
* `postgres_copy`: the same, against COPY of plain psycopg.
* `postgres_update`: an update of each row by its key, against psycopg's `executemany`.
* `workers_small`, `workers_large`, `updates`, `load`: see `sink_workers.py`.
* `diff`, `diff_sqlite`: see `diff.py`.
"""

from __future__ import annotations

import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

from ..dialects.sqlite.types import compile_encode, declared_type
from ..engine.checkpoint import CheckpointFile
from ..events import Chunk, Column, CreateTable, Ddl, Item, Row, RowChange, Table, TableProgress, Transaction
from ..sink import Delivery, open_sink
from ..testing.mariadb import PASSWORD, MariaDb
from ..testing.postgres import PostgreSql
from . import sink_workers
from .sink_postgres import Psycopg

TABLE: Final = Table(
    "bench",
    "orders",
    (
        Column("id", "int", nullable=False),
        Column("big", "bigint", unsigned=True),
        Column("price", "decimal", length=12, scale=2),
        Column("ratio", "double"),
        Column("name", "varchar", length=60, charset="utf8mb4", collation="utf8mb4_general_ci"),
        Column("at", "datetime"),
        Column("flag", "tinyint"),
        Column("note", "text", length=2, charset="utf8mb4", collation="utf8mb4_general_ci"),
    ),
    key=(0,),
)
_BATCH: Final = 10_000
_MOMENT: Final = datetime(2026, 3, 1, 4, 5, 6, tzinfo=UTC).replace(tzinfo=None)


def run(
    *, rows: int = 200_000, updates: int = 50_000, small: int = 2_000, parallel: int = 30_000, rounds: int = 3
) -> dict[str, object]:
    """Return one result in the form that all benchmarks share; a ratio above 1 is better than the
    yardstick."""
    from . import diff  # which compares this table

    before = [row(key, "n" * 40) for key in range(rows)]
    after = [row(key, "m" * 40) for key in range(updates)]
    counts = {
        "sqlite": rows,
        "mariadb": rows,
        "mariadb_update": updates,
        "postgres_load": rows,
        "postgres_copy": rows,
        "postgres_update": updates,
    }
    ours: dict[str, list[float]] = {name: [] for name in counts}
    theirs: dict[str, list[float]] = {name: [] for name in counts}
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
        MariaDb(Path(name, "db")) as server,
        PostgreSql(Path(name, "postgres")) as postgres,
    ):
        for number in range(rounds):
            folder = Path(name, str(number))
            folder.mkdir()
            url = f"sqlite:///{folder / 'ours.db'}"
            ours["sqlite"].append(_deliver(url, loads(before)))
            theirs["sqlite"].append(_executemany(folder / "theirs.db", before))
            copy, dumped = f"copy_{number}", f"dumped_{number}"
            ours["mariadb"].append(_deliver(server.url(copy), loads(before)))
            theirs["mariadb"].append(_load(server, _dump(server, folder, copy), dumped))
            ours["mariadb_update"].append(_deliver(server.url(copy), _updates(before, after)))
            theirs["mariadb_update"].append(_load(server, _statements(folder, after), dumped))
            with postgres.connect() as connection:
                connection.execute(f"CREATE DATABASE {copy}")
            url = postgres.url(copy)
            plain = Psycopg(url, TABLE)
            ours["postgres_load"].append(_deliver(url, loads(before)))
            ours["postgres_copy"].append(ours["postgres_load"][-1])
            theirs["postgres_load"].append(plain.insert(before))
            theirs["postgres_copy"].append(plain.copy(before))
            theirs["postgres_update"].append(plain.update(after))
            ours["postgres_update"].append(_deliver(url, _updates(before, after)))
    parallel_rows = before[:parallel]
    workers, one = sink_workers.run(TABLE, parallel_rows, loads, small=small, rounds=rounds)
    compared = diff.run(rows=rows, rounds=rounds)
    figures = {name: round(counts[name] / statistics.median(ours[name])) for name in ours}
    yardstick = {name: round(counts[name] / statistics.median(theirs[name])) for name in ours}
    return {
        "bench": "sink",
        "settings": {
            "rows": rows,
            "updates": updates,
            "small": small,
            "parallel": parallel,
            "rounds": rounds,
        },
        "figures": figures | workers | compared["figures"],
        "yardstick": yardstick | one | compared["yardstick"],
        "ratio": {name: round(figures[name] / yardstick[name], 2) for name in ours}
        | sink_workers.ratios(workers, one)
        | compared["ratio"],
    }


def row(key: int, note: str) -> Row:
    price = Decimal(key % 10_000) / 4
    return (key, 2**63 + key, price, key / 7, f"name of {key}", _MOMENT, key % 100, note)


# --- ours -------------------------------------------------------------------------------------------


def loads(rows: Sequence[Row]) -> list[Item]:
    """Return the snapshot of the table, in chunks."""
    create = Ddl(1, 0, "bench", TABLE.schema, TABLE.name, "", (CreateTable(TABLE),), "log:1")
    loads = [
        Transaction(
            2 + first,
            0,
            "bench",
            [RowChange(0, 0, TABLE, "insert", None, row) for row in rows[first : first + _BATCH]],
            "log:1",
            chunk=Chunk(TABLE.full_name, TableProgress((first + _BATCH - 1,))),
        )
        for first in range(0, len(rows), _BATCH)
    ]
    return [create, *loads, Transaction(2 + len(rows), 0, "bench", [], "log:1", chunk=Chunk(""))]


def _updates(before: Sequence[Row], after: Sequence[Row]) -> list[Item]:
    pairs = zip(before, after, strict=False)
    changes = [RowChange(0, 0, TABLE, "update", old, new) for old, new in pairs]
    return [
        Transaction(1_000_000_000 + first, 0, "bench", changes[first : first + _BATCH], "log:2")
        for first in range(0, len(changes), _BATCH)
    ]


def _deliver(url: str, items: list[Item]) -> float:
    """Return the seconds to write all items, without a first one that creates the table."""
    created = 1 if isinstance(items[0], Ddl) else 0
    sink = open_sink("bench", url, feed="bench", store=CheckpointFile(Path("unused")))
    with closing(sink):
        work = Delivery(sink, sink.open(), "bench")
        work.accept(items[:created])
        work.run(0)
        work.flush(0)
        work.accept(items[created:])
        begun = time.perf_counter()
        work.run(0)
        work.flush(0)
        return time.perf_counter() - begun


# --- the yardsticks ---------------------------------------------------------------------------------


def _executemany(path: Path, rows: Sequence[Row]) -> float:
    encoded = compile_encode(TABLE.columns, range(len(TABLE.columns)))(rows)
    columns = ", ".join(f"{column.name} {declared_type(column)}" for column in TABLE.columns)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"CREATE TABLE orders ({columns}, PRIMARY KEY (id))")
        begun = time.perf_counter()
        for first in range(0, len(rows), _BATCH):
            connection.execute("BEGIN IMMEDIATE")
            marks = ",".join("?" * len(TABLE.columns))
            connection.executemany(f"INSERT INTO orders VALUES ({marks})", encoded[first : first + _BATCH])
            connection.execute("COMMIT")
        return time.perf_counter() - begun


def login(server: MariaDb) -> list[str]:
    return [f"--host={server.host}", f"--port={server.port}", "--user=root", f"--password={PASSWORD}"]


def _dump(server: MariaDb, folder: Path, database: str) -> Path:
    path = folder / "dump.sql"
    program = shutil.which("mariadb-dump") or "mariadb-dump"
    with path.open("wb") as file:
        subprocess.run([program, *login(server), database, TABLE.name], stdout=file, check=True)
    return path


def _statements(folder: Path, rows: Sequence[Row]) -> Path:
    path = folder / "updates.sql"
    with path.open("w") as file:
        file.write("START TRANSACTION;\n")
        for key, *values in rows:
            pairs = zip(TABLE.columns[1:], values, strict=True)
            changes = ", ".join(f"{column.name} = '{value}'" for column, value in pairs)
            file.write(f"UPDATE {TABLE.name} SET {changes} WHERE id = {key};\n")
        file.write("COMMIT;\n")
    return path


def _load(server: MariaDb, path: Path, database: str) -> float:
    server.execute(f"CREATE DATABASE IF NOT EXISTS {database}")
    program = shutil.which("mariadb") or "mariadb"
    begun = time.perf_counter()
    with path.open("rb") as file:
        subprocess.run([program, *login(server), database], stdin=file, check=True)
    return time.perf_counter() - begun
