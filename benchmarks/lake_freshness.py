"""How old a row is when readers of a lake see it: a feed from MariaDB, in milliseconds.

A row is inserted every 20 ms, with the time of its statement; a commit of the table's log makes it visible.
Both the feed and the yardstick commit once a second: the yardstick asks the source for rows with greater
keys, and adds them by `write_deltalake`. It would miss updates and deletes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from threading import Event, Thread
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import write_deltalake

from ..compare.verification import verified_feed
from ..engine.options import feed_options
from ..testing.mariadb import MariaDb
from ..testing.progress import eventually
from .in_turn import Measured

_EVERY_SECONDS: Final = 0.02
_COMMIT_SECONDS: Final = 1.0


def freshness(folder: Path, seconds: float) -> Measured:
    """Return the median and the 99th percentile over rows that were inserted for so long."""

    def ages() -> list[list[float]]:
        return [_ages(folder / "fresh/bench.item", "after"), _ages(folder / "polled", "")]

    stopping = Event()
    with MariaDb(folder / "source") as source:
        source.execute(
            "CREATE DATABASE bench",
            "CREATE TABLE bench.item (id INT AUTO_INCREMENT PRIMARY KEY, at BIGINT NOT NULL)",
        )
        document = {
            "name": "bench",
            "data_dir": f"{folder}/state",
            "source": {"url": source.url(), "tables": ["bench.*"]},
            "sink": [{"name": "lake", "url": f"delta://{folder}/fresh", "flush_seconds": _COMMIT_SECONDS}],
        }
        feed = verified_feed(feed_options(document))
        feed.start()
        polling = Thread(target=_poll, args=(source, folder / "polled", stopping))
        polling.start()
        try:
            rows = _write(source, seconds)
            eventually(lambda: all(len(one) == rows for one in ages()), sign=lambda: [*map(len, ages())])
        finally:
            stopping.set()
            polling.join()
            feed.stop()
            feed.wait()
    ours, bare = ({"freshness_p50_ms": _at(one, 50), "freshness_p99_ms": _at(one, 99)} for one in ages())
    return Measured({**ours, "freshness_rows": rows}, bare)


def _write(source: MariaDb, seconds: float) -> int:
    """Insert rows for a time; return their number."""
    count = 0
    with source.connect() as connection, connection.cursor() as cursor:
        end = time.time() + seconds
        while time.time() < end:
            cursor.execute(f"INSERT INTO bench.item (at) VALUES ({time.time_ns() // 1_000_000})")
            count += 1
            time.sleep(_EVERY_SECONDS)
    return count


def _poll(source: MariaDb, folder: Path, stopping: Event) -> None:
    last = 0
    with source.connect() as connection, connection.cursor() as cursor:
        while not stopping.wait(_COMMIT_SECONDS):
            cursor.execute(f"SELECT id, at FROM bench.item WHERE id > {last} ORDER BY id")
            if rows := cursor.fetchall():
                last = rows[-1][0]
                columns = {"id": pa.array([row[0] for row in rows]), "at": pa.array([row[1] for row in rows])}
                write_deltalake(folder, pa.table(columns), mode="append")


def _ages(folder: Path, image: str) -> list[float]:
    """Return the milliseconds from each row's statement until the commit that has it."""
    return [
        age
        for path in sorted((folder / "_delta_log").glob("*.json"))
        for age in _of_commit(folder, path, image)
    ]


def _of_commit(folder: Path, path: Path, image: str) -> Iterator[float]:
    visible_ms = path.stat().st_mtime_ns / 1_000_000
    for line in path.read_text().splitlines():
        if add := json.loads(line).get("add"):
            rows = pq.ParquetFile(folder / add["path"]).read()
            made = pc.struct_field(rows[image], "at") if image else rows["at"]
            yield from (visible_ms - at for at in made.to_pylist())


def _at(ages: list[float], percent: int) -> float:
    return round(quantiles(ages, n=100)[percent - 1])
