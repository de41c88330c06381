"""A million rows of a TiKV by a backfill whose driver, executors and tasks are killed, under writes."""

from __future__ import annotations

import json
import signal
import sys
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from tidemill.engine.feed import Feed
from tidemill.engine.opening import checkpoint_file
from tidemill.engine.options import feed_options
from tidemill.events import Ddl, Item
from tidemill.sink import SinkFactory
from tidemill.sink.python import python_sink
from tidemill.spark.backfill.backfilled import opened
from tidemill.spark.backfill.directory import READ, BackfillDirectory
from tidemill.testing.progress import ended, feed_ended

from ..cluster.standalone import EXECUTOR, Cluster, Session
from .peaks import Peaks
from .tikv import TikvServer
from .workload import TABLES

pytestmark = pytest.mark.soak

ROWS: Final = 2_500_000
"""Changes that leave about a million rows."""
LATER_ROWS: Final = 10_000
STEP: Final = 8
"""Files of chunks between two kills, two of each."""
MOST_BYTES: Final = 320 << 20
"""Most memory of a task."""
PROGRAM: Final = Path(__file__).with_name("fill.py")


class Filling(Session):
    """A driver of a backfill on the cluster."""

    def __init__(self, cluster: Cluster, server: TikvServer, directory: Path) -> None:
        given = {
            "master": cluster.url,
            "source": {"source": server.url, "tables": "shop.*", "name": "backlog"},
            "directory": str(directory / "fill"),
        }
        command = [sys.executable, PROGRAM, json.dumps(given)]
        super().__init__(command, directory / "log", env=cluster.environment())


class Copy:
    """Versions by table and id, as they are delivered; a row that doesn't fit is an error."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, int]] = {table: {} for table in TABLES}

    def receive(self, items: list[Item]) -> None:
        for item in items:
            if isinstance(item, Ddl):
                continue
            for row in item.rows:
                rows = self.rows[row.table.name]
                if row.before is not None:
                    assert rows.pop(row.before[0]) == row.before[1], row
                if row.after is not None:
                    id_, v, price, name = row.after
                    assert id_ not in rows, row
                    assert name == f"row {v} {'x' * (v % 50)}", row
                    assert price == v % 100_000 + price % 1, row
                    rows[id_] = v


def test_it_is_killed_many_times(cluster: Cluster, tmp_path: Path) -> None:
    place = BackfillDirectory(tmp_path / "fill")
    with TikvServer() as server:
        server.run(ROWS)
        begun, sizes = monotonic(), dict[str, int]()
        finished: dict[str, tuple[int, int]] = {}
        for victims in (["executor", "task"], ["host", "task"], ["executor"], []):
            with (
                Filling(cluster, server, tmp_path) as driver,
                Peaks([driver.process.pid, *(host.process.pid for host in cluster.hosts)], sizes),
            ):
                for victim in victims:
                    driver.until(partial(has_grown, place, len(finished)))
                    finished = grown(place, finished)
                    kill(cluster, victim)
                    server.run(LATER_ROWS)
                if victims:
                    driver.until(partial(has_grown, place, len(finished)))
                    assert place.manifest() is None
                else:
                    assert ended(driver.process, sign=lambda: len(files(place))) == 0, driver.log()
            # The driver is killed at the end of the block; its tasks may go on for a while.
            finished = grown(place, finished)
        done, seconds = opened(place.path), monotonic() - begun
        most = ", ".join(f"{kind} {size >> 20} MiB" for kind, size in sorted(sizes.items()))
        rate = f"{done.chunks} chunks, {seconds:.0f} s, {done.rows / seconds:,.0f} rows/s"
        print(f"{done.rows:,} rows in {rate}: {most}")
        assert done.rows > 1_000_000
        copy = Copy()
        feed, sink = following(server.url, tmp_path / "state", copy)
        done.load([sink])
        feed.start()
        feed_ended(feed)
        assert feed.error is None
        for number, table in enumerate(TABLES):
            ids, versions = server.workload.rows_of(number)
            assert copy.rows[table] == dict(zip(ids.tolist(), versions.tolist(), strict=True))
    assert sizes["task"] <= MOST_BYTES


def files(place: BackfillDirectory) -> dict[str, tuple[int, int]]:
    """Return the files of finished chunks, by name: their numbers on the disk, and their times."""
    found = {}
    for number, record in place.records(READ, sorted(place.numbers(READ))).items():
        for path in (place.path / READ / f"{number:06}.json", place.path / record.file):
            status = path.stat()
            found[path.name] = status.st_ino, status.st_mtime_ns
    return found


def has_grown(place: BackfillDirectory, before: int) -> bool:
    return len(files(place)) >= before + STEP


def grown(place: BackfillDirectory, before: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Return the files now, among which those from before are the same."""
    now = files(place)
    assert before.items() <= now.items()
    return now


def kill(cluster: Cluster, victim: str) -> None:
    number = next(n for n, host in enumerate(cluster.hosts) if host.executors())
    host = cluster.hosts[number]
    if victim == "host":
        host.kill()
        cluster.start(number)
    else:
        host.signal(signal.SIGKILL, EXECUTOR if victim == "executor" else "pyspark.daemon")


def following(url: str, directory: Path, copy: Copy) -> tuple[Feed, SinkFactory]:
    """A feed up to now."""
    source = {"url": url, "tables": ["shop.*"]}
    options = feed_options({"name": "backlog", "data_dir": str(directory), "until": "now", "source": source})
    directory.mkdir()
    sink = python_sink("copy", copy.receive, checkpoint_file(options, "copy"))
    return Feed(options, [sink]), sink
