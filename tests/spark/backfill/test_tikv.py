"""Backfills of a TiKV cluster: regions at one ts, and the feed from there."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from tidemill.codec.tidb.key import record_key
from tidemill.emulator.sql import Tidb
from tidemill.errors import SourceError
from tidemill.events import Ddl, Item
from tidemill.feed import Feed
from tidemill.options import checkpoint_file, feed_options
from tidemill.sink.python import PythonSink
from tidemill.spark.backfill.backfill import backfill
from tidemill.spark.backfill.directory import READ, Directory
from tidemill.spark.backfill.progress import BackfillProgress

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

    def __init__(self, tidb: Tidb) -> None:
        self.transactions = 0
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

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def feed(tidb: Tidb, directory: Path, copy: Copy) -> tuple[Feed, PythonSink]:
    """Up to now."""
    options = feed_options(
        {
            "data_dir": str(directory),
            "until": "now",
            "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
        }
    )
    directory.mkdir(exist_ok=True)
    sink = PythonSink("copy", copy.receive, checkpoint_file(options, "copy"))
    return Feed(options, [sink]), sink


def test_rows_that_change_meanwhile_are_the_same_at_the_end(
    spark: SparkSession, tidb: Tidb, tmp_path: Path
) -> None:
    create(tidb)
    copy, again = Copy(), Copy()
    told: list[BackfillProgress] = []
    source = {"source": f"tikv://{tidb.pd_address}", "tables": "shop.*", "name": "tidemill"}
    with Writer(tidb) as writer:
        done = backfill(spark, source, tmp_path / "bf", report=told.append)
        meanwhile = writer.transactions
        following, sink = feed(tidb, tmp_path / "state", copy)
        done.load([sink])
    assert meanwhile > 0
    assert done.chunks == told[-1].chunks == 6
    following, _ = feed(tidb, tmp_path / "state", copy)
    following.start()
    assert following.wait(60)
    assert following.error is None
    fresh, _ = feed(tidb, tmp_path / "fresh", again)
    fresh.start()
    assert fresh.wait(60)
    assert sum(map(len, again.rows.values())) > ROWS
    assert copy.rows == again.rows


def test_chunks_that_were_finished_are_not_read_again(
    spark: SparkSession, tidb: Tidb, tmp_path: Path
) -> None:
    create(tidb)
    source = {"source": f"tikv://{tidb.pd_address}", "tables": "shop.*"}
    done = backfill(spark, source, tmp_path / "bf")
    place = Directory(tmp_path / "bf")
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


def test_a_ts_that_was_collected_is_refused(spark: SparkSession, tidb: Tidb, tmp_path: Path) -> None:
    tidb.execute("create table shop.a (id bigint primary key)")
    before = tidb.tso()
    with tidb.transaction() as txn:
        txn.insert("shop.a", {"id": 1})
    tidb.gc()
    source = {"source": f"tikv://{tidb.pd_address}", "tables": "shop.a", "ts": str(before)}
    with pytest.raises(SourceError, match="GC safe point"):
        backfill(spark, source, tmp_path / "bf")
