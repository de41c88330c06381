"""Backfills of a TiKV cluster: regions at one ts, and the feed from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from tidemill.codec.tidb.key import record_key, record_prefix
from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import checkpoint_file
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError, SourceError
from tidemill.events import Ddl, Item
from tidemill.sink import SinkFactory
from tidemill.sink.python import python_sink
from tidemill.spark.backfill.backfill import backfill
from tidemill.spark.backfill.directory import READ, BackfillDirectory
from tidemill.spark.backfill.progress import BackfillProgress
from tidemill.testing.progress import eventually, feed_ended

from .world import PAUSE_SECONDS, finished, processes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 3_000


class Copy:
    """Rows by table and key, as they are delivered; a row that doesn't fit is an error."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Any, Any]] = {}

    def receive(self, items: list[Item]) -> None:
        for item in items:
            if isinstance(item, Ddl):
                self.rows.setdefault(item.full_name, {})
                continue
            for row in item.rows:
                table, key = self.rows[row.table.full_name], (row.after or row.before)[0]
                assert (row.before is None) == (key not in table), row
                if row.after is None:
                    del table[key]
                else:
                    table[key] = row.after


def create(tidb: Tidb) -> None:
    """A table whose rows are in three regions, one with a key of strings, one in partitions."""
    tidb.execute("create table shop.a (id bigint primary key, n int, s varchar(20))")
    tidb.execute("create table shop.w (s varchar(20) primary key, n int)")
    tidb.execute(
        "create table shop.p (id bigint primary key, n int) partition by range (id) "
        "(partition p0 values less than (100), partition p1 values less than maxvalue)"
    )
    for first in range(0, ROWS, 500):
        with tidb.transaction() as txn:
            for number in range(first, first + 500):
                txn.insert("shop.a", {"id": number, "n": number, "s": f"row {number}"})
    with tidb.transaction() as txn:
        for number in range(200):
            txn.insert("shop.w", {"s": f"k{number}", "n": number})
            txn.insert("shop.p", {"id": number, "n": number})
    for number in (1_000, 2_000):
        tidb.split(record_key(tidb.schema.table("shop.a").info.id, number))


class Writer:
    """A transaction after the other."""

    def __init__(self, tidb: Tidb, begun: int = 0) -> None:
        """`begun`: what another one has done."""
        self.transactions = begun
        self._tidb = tidb
        self._stop = Event()
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            number = self.transactions
            with self._tidb.transaction() as txn:
                txn.update("shop.a", number * 7 % ROWS, {"n": -number})
                txn.insert("shop.a", {"id": 10 * ROWS + number, "n": 0, "s": "new"})
                if number % 2:
                    txn.delete("shop.a", 10 * ROWS + number - 1)
                txn.update("shop.w", f"k{number % 200}", {"n": -number})
                txn.update("shop.p", number % 200, {"n": -number})
            self.transactions += 1
            self._stop.wait(20 * PAUSE_SECONDS)  # the cluster is in this process

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def feed(tidb: Tidb, directory: Path, copy: Copy) -> tuple[Feed, SinkFactory]:
    """Up to now."""
    options = feed_options(
        {
            "data_dir": str(directory),
            "until": "now",
            "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
        }
    )
    directory.mkdir(exist_ok=True)
    sink = python_sink("copy", copy.receive, checkpoint_file(options, "copy"))
    return Feed(options, [sink]), sink


def test_rows_that_change_meanwhile_are_the_same_at_the_end(
    spark: SparkSession, tidb: Tidb, tmp_path: Path
) -> None:
    create(tidb)
    copy = Copy()
    told: list[BackfillProgress] = []
    source = {"source": f"tikv://{tidb.pd_address}", "tables": "shop.*", "name": "tidemill"}
    with Writer(tidb) as writer:
        done = backfill(spark, source, tmp_path / "bf", report=told.append)
        meanwhile = writer.transactions
        done.load([feed(tidb, tmp_path / "state", copy)[1]])
    assert meanwhile > 0
    assert done.chunks == told[-1].chunks == 6
    check_same(tidb, tmp_path, copy)


def check_same(tidb: Tidb, directory: Path, copy: Copy) -> None:
    """The feed goes on, and then has what a new one finds."""
    again = Copy()
    following, _ = feed(tidb, directory / "state", copy)
    following.start()
    feed_ended(following)
    assert following.error is None
    fresh, _ = feed(tidb, directory / "fresh", again)
    fresh.start()
    feed_ended(fresh)
    assert sum(map(len, again.rows.values())) > ROWS
    assert copy.rows == again.rows


@pytest.mark.soak
def test_a_killed_backfill_goes_on_with_the_chunks_that_are_missing(
    spark: SparkSession, tidb: Tidb, tmp_path: Path
) -> None:
    create(tidb)
    partition = tidb.schema.table("shop.p").info.partition
    assert partition is not None
    before, region = tidb.split(record_prefix(partition.definitions[1].id))
    tidb.fail_next(region, "server_is_busy", 1_000_000, "kv")  # until the region is no more
    url, directory, copy = f"tikv://{tidb.pd_address}", tmp_path / "bf", Copy()
    command = [sys.executable, str(Path(__file__).with_name("driver.py")), url, "shop.*", str(directory), "1"]
    with (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        plan = eventually(BackfillDirectory(directory).plan, 120)
        with Writer(tidb) as writer:
            wanted = {chunk.number for _, chunk in plan.chunks()}
            eventually(lambda: len(finished(directory)) == len(wanted) - 1)
            eventually(lambda: tidb.injected.hits["server_is_busy"])
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
            eventually(lambda: not processes(driver.pid))
    finally:
        for left in processes(driver.pid):
            os.kill(left, signal.SIGKILL)
        driver.wait()
    begun = writer.transactions
    with Writer(tidb, begun) as writer:
        early = finished(directory)
        records = BackfillDirectory(directory).records(READ, sorted(early))
        tidb.merge(before)
        tidb.gc()  # what the plan's ts needs is held
        told: list[BackfillProgress] = []
        done = backfill(spark, {"source": url, "tables": "shop.*"}, directory, report=told.append)
        assert told[0].chunks == len(early) == len(wanted) - 1
        assert BackfillDirectory(directory).records(READ, sorted(early)) == records
        assert done.rows == ROWS + 400
        done.load([feed(tidb, tmp_path / "state", copy)[1]])
        assert writer.transactions > begun > 0
    check_same(tidb, tmp_path, copy)


def test_chunks_that_were_finished_are_not_read_again(
    spark: SparkSession, tidb: Tidb, tmp_path: Path
) -> None:
    create(tidb)
    source = {"source": f"tikv://{tidb.pd_address}", "tables": "shop.*"}
    done = backfill(spark, source, tmp_path / "bf")
    place = BackfillDirectory(tmp_path / "bf")
    (tmp_path / "bf" / "done.json").unlink()
    numbers = sorted(place.numbers(READ))
    before = place.records(READ, numbers)
    lost = numbers[1]  # as if it had never been finished
    (tmp_path / "bf" / READ / f"{lost:06}.json").unlink()
    with tidb.transaction() as txn:  # later than the ts that all is read at
        txn.update("shop.a", 1, {"n": -1})
    told: list[BackfillProgress] = []
    again = backfill(spark, source, tmp_path / "bf", report=told.append)
    after = place.records(READ, numbers)
    assert told[0].chunks == len(numbers) - 1
    assert {number for number in numbers if before[number] != after[number]} == {lost}
    assert again.offset == done.offset
    assert again.rows == done.rows == ROWS + 400


def test_a_ts_that_is_yet_to_come_is_refused(spark: SparkSession, tidb: Tidb, tmp_path: Path) -> None:
    ts = tidb.tso() + (60_000 << 18)
    source = {"source": f"tikv://{tidb.pd_address}", "tables": "shop.*", "ts": str(ts)}
    with pytest.raises(ConfigError, match=r"option ts = \d+: it is yet to come, the cluster has come to \d+"):
        backfill(spark, source, tmp_path / "bf")


def test_a_ts_that_was_collected_is_refused(spark: SparkSession, tidb: Tidb, tmp_path: Path) -> None:
    tidb.execute("create table shop.a (id bigint primary key)")
    before = tidb.tso()
    with tidb.transaction() as txn:
        txn.insert("shop.a", {"id": 1})
    tidb.gc()
    source = {"source": f"tikv://{tidb.pd_address}", "tables": "shop.a", "ts": str(before)}
    with pytest.raises(SourceError, match="GC safe point"):
        backfill(spark, source, tmp_path / "bf")
