"""An operator's way from a full store to a smaller one, with the commands that the page names."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidemill.engine.status import StatusFile
from tidemill.errors import CheckpointError
from tidemill.store.plan import decode_plan
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import completed, eventually

SECONDS_APART = 30
BEGIN, MIDDLE = "begin", "middle"
"""Names of the locks that the target's trigger waits for."""

FEED = """
name = "shops"
data_dir = "{folder}/state"

[[source]]
name = "north"
url = "{north}"
tables = ["north.*"]

[[source]]
name = "south"
url = "{south}"
tables = ["south.*"]

[sorter]
memory_bytes = "8MiB"

[[sink]]
name = "warehouse"
url = "{target}"
"""


def fill(server: MariaDb, table: str, begin: int, transactions: int, rows: int, size: int) -> None:
    """Commit transactions of rows of `size` bytes each, half a minute apart by the server's clock.

    They begin in the future, at `begin` in Unix seconds: a feed's commit timestamps never go back."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {table.partition('.')[0]}")
        for number in range(transactions):
            cursor.execute(f"SET timestamp = {begin + number * SECONDS_APART}")
            cursor.execute(
                f"INSERT INTO {table} SELECT seq, REPEAT(CHAR(97 + seq % 26), {size})"
                f" FROM seq_{number * rows}_to_{(number + 1) * rows - 1}"
            )


@contextmanager
def held(server: MariaDb, table: str, last: int) -> Iterator[Callable[[], None]]:
    """Let no row into the table, and after a call of what is yielded those up to id `last`."""
    with server.connect() as first, server.connect() as second:
        for connection, name in ((first, BEGIN), (second, MIDDLE)):
            connection.cursor().execute(f"SELECT GET_LOCK('{name}', 0)")
        first.cursor().execute(
            f"CREATE TRIGGER {table}_held BEFORE INSERT ON {table} FOR EACH ROW"
            f" DO RELEASE_LOCK(IF(GET_LOCK('{BEGIN}', 3600), '{BEGIN}', '')),"
            f" IF(NEW.id > {last}, RELEASE_LOCK(IF(GET_LOCK('{MIDDLE}', 3600), '{MIDDLE}', '')), 0)"
        )
        try:
            yield lambda: first.cursor().execute(f"SELECT RELEASE_LOCK('{BEGIN}')")
        finally:
            for connection, name in ((first, BEGIN), (second, MIDDLE)):
                connection.cursor().execute(f"SELECT RELEASE_LOCK('{name}')")
            first.cursor().execute(f"DROP TRIGGER {table}_held")


@contextmanager
def running(feed: Path) -> Iterator[int]:
    with (feed.parent / "run.log").open("w") as log:
        command = [sys.executable, "-m", "tidemill.cli", "run", str(feed)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield process.pid
        finally:
            process.kill()
            process.wait()


def tidemill(*arguments: object) -> str:
    command = [sys.executable, "-m", "tidemill.cli", *map(str, arguments)]
    done = completed(command, 600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def disk_bytes(folder: Path) -> int:
    try:
        return StatusFile(folder / "state").load().sorter_disk_bytes
    except CheckpointError:
        return 0


def is_normal(folder: Path, pid: int) -> bool:
    found = StatusFile(folder / "state").load()
    return found.pid == pid and found.state == "normal"


def is_still(folder: Path) -> bool:
    """Return True once the feed has taken and passed on nothing for five seconds."""
    first = StatusFile(folder / "state").load()
    eventually(lambda: StatusFile(folder / "state").load().updated > first.updated + 5)
    last = StatusFile(folder / "state").load()
    return (first.sorter_disk_bytes, first.rows) == (last.sorter_disk_bytes, last.rows)


def mebibytes(text: str) -> float:
    number, unit = text.split()
    return float(number.replace(",", "")) * {"MiB": 1, "GiB": 1024, "KiB": 1 / 1024}[unit]


@pytest.mark.soak
@pytest.mark.parametrize("transactions", [120])
def test_a_page_leads_to_a_plan_that_frees_what_it_says(tmp_path: Path, transactions: int) -> None:
    feed = tmp_path / "feed.toml"
    with (
        MariaDb(tmp_path / "north") as north,
        MariaDb(tmp_path / "south") as south,
        MariaDb(tmp_path / "target") as target,
    ):
        feed.write_text(
            FEED.format(folder=tmp_path, north=north.url(), south=south.url(), target=target.url())
        )
        for server, table in ((north, "north.orders"), (south, "south.clicks")):
            server.execute(
                f"CREATE DATABASE {table.partition('.')[0]}",
                f"CREATE TABLE {table} (id INT PRIMARY KEY, note TEXT)",
            )
        tidemill("run", feed, "--until", "now")
        begin = int(time.time()) + 600
        fill(north, "north.orders", begin, transactions, 20_000, 30)
        fill(south, "south.clicks", begin, transactions, 1500, 1000)
        with held(target, "south.clicks", transactions * 4 // 10 * 1500) as let_on, running(feed) as pid:
            # South can't be reached for a while; what comes of it later is as old as what north had before.
            eventually(lambda: is_normal(tmp_path, pid), 300)
            south.pause()
            eventually(lambda: disk_bytes(tmp_path) > transactions * 600_000, 300)
            eventually(lambda: is_still(tmp_path), 300)
            south.resume()
            eventually(lambda: disk_bytes(tmp_path) > transactions * 2_000_000, 300)
            eventually(lambda: is_still(tmp_path), 300)
            let_on()
            eventually(lambda: is_still(tmp_path), 300)
            plan, page, after = (tmp_path / name for name in ("plan.json", "page.html", "after.html"))
            tidemill("analyze", feed, "--page", page, "--plan", plan)
            steps = decode_plan(plan.read_bytes(), "plan").steps
            assert steps
            assert f"tidemill compact {feed} --plan {plan} --page after.html" in page.read_text()
            assert "north.orders" in page.read_text()
            said = tidemill("compact", feed, "--plan", plan, "--page", after)
            before, left = re.search(r"keys and values: (.*) before, (.*) after", said).groups()
            assert mebibytes(left) < mebibytes(before)
            assert "Before and after the compaction" in after.read_text()
