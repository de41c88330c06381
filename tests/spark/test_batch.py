"""spark.read.format("tidemill")"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.spark.offsets.mysql import MysqlOffsets
from tidemill.spark.offsets.offset import Limit, ts_offset
from tidemill.spark.read.options import read_options
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually

from . import history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, source: str, **options: Any) -> DataFrame:
    reader = spark.read.format("tidemill").option("source", source)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


@pytest.mark.parametrize("partitions", [1, 3])
def test_changes_of_tikv_are_those_of_the_local_feed(
    spark: SparkSession, tidb: Tidb, tmp_path: Path, partitions: int
) -> None:
    url = f"tikv://{tidb.pd_address}"
    before, end = history.on_tidb(tidb), tidb.tso()
    frame = read(spark, url, tables="shop.*", fromTs=before, toTs=end, partitions=partitions)
    source = f"tikv cluster {tidb.options.cluster_id}"
    wanted = history.local(url, ["shop.*"], ts_offset(before, source), ts_offset(end, source), tmp_path)
    assert len(history.lines(wanted)) == 12 * 2 + 1 + 4 * 3
    found = history.of_frame(frame)
    if partitions == 1:
        assert found == history.lines(wanted)
    else:
        assert sorted(map(repr, found)) == sorted(map(repr, history.lines(wanted)))
    assert frame.rdd.getNumPartitions() == partitions


@pytest.mark.parametrize("partitions", [1, 3])
def test_changes_of_mariadb_are_those_of_the_local_feed(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path, partitions: int
) -> None:
    url, tables = mariadb.url(), f"{sql.database}.*"
    history.tables_on_mariadb(sql)
    offsets = MysqlOffsets(read_options({"source": url, "tables": tables}))
    first = offsets.latest()
    history.on_mariadb(sql)
    start = offsets.at_position(first.position)
    end = offsets.following(start, None, Limit())
    offsets.close()
    wanted = history.local(url, [tables], start, end, tmp_path)
    assert len(history.lines(wanted)) == 12 * 2 + 1 + 4 * 3 + 5000 + 5004
    where = {"fromPosition": first.position, "toPosition": end.position}
    frame = read(spark, url, tables=tables, partitions=partitions, **where)
    assert history.of_frame(frame) == history.lines(wanted)


def test_a_snapshot_of_tikv_is_of_its_ts(spark: SparkSession, tidb: Tidb) -> None:
    history.on_tidb(tidb)
    then = tidb.tso()
    with tidb.transaction() as txn:
        txn.update("shop.orders", 0, {"note": "later"})
    frames = [
        read(spark, f"tikv://{tidb.pd_address}", table="shop.orders", partitions=2, **at)
        for at in ({"ts": then}, {})
    ]
    notes = [
        {row.id: row.note for row in frame.filter("op = 'insert'").select("after.*").collect()}
        for frame in frames
    ]
    assert [len(found) for found in notes] == [12, 12]
    assert [found[0] for found in notes] == ["order 0", "later"]
    assert frames[0].select("after.colour").distinct().collect() == [("red",)]


def test_a_snapshot_of_mariadb_is_one_view(spark: SparkSession, sql: Client, mariadb: MariaDb) -> None:
    history.tables_on_mariadb(sql)
    history.on_mariadb(sql)
    frame = read(spark, mariadb.url(), tables=f"{sql.database}.*", partitions=3)
    assert frame.rdd.getNumPartitions() == 1
    counts = {(row.table, row.op): row["count"] for row in frame.groupBy("table", "op").count().collect()}
    wanted = {("orders", "insert"): 12, ("pairs", "insert"): 8, ("logs", "insert"): 5004}
    assert counts == wanted | {(table, "ddl"): 1 for table in ("orders", "pairs", "logs")}


def test_columns_are_left_out_that_the_schema_lacks(spark: SparkSession, tidb: Tidb) -> None:
    history.on_tidb(tidb)
    reader = spark.read.format("tidemill").schema("op string, table string, after string")
    frame = reader.option("source", f"tikv://{tidb.pd_address}").option("tables", "shop.logs").load()
    assert frame.columns == ["op", "table", "after"]
    assert {row.op for row in frame.collect()} == {"ddl", "insert"}


def test_filters_are_pushed_down(spark: SparkSession, tidb: Tidb) -> None:
    before = history.on_tidb(tidb)

    def changes() -> DataFrame:
        where = {"tables": "shop.*", "fromTs": before, "partitions": 2, "filterPushdown": "true"}
        return read(spark, f"tikv://{tidb.pd_address}", **where)

    found = changes().filter("table = 'logs' and op = 'insert'")
    assert found.count() == 4
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "Filter (" not in plan
    last = found.agg({"commit_ts": "max"}).collect()[0][0]
    assert changes().filter(f"commit_ts >= {last}").count() == 3
    assert changes().filter(f"commit_ts < {last} and op = 'delete'").count() == 3
    assert changes().filter("op = 'insert' and op = 'delete'").count() == 0


def test_stopping_early_leaves_no_thread_and_no_directory(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    history.tables_on_mariadb(sql)
    sql("INSERT INTO logs SELECT seq, REPEAT('x', 40), 1 FROM seq_1_to_200000")
    frame = read(spark, mariadb.url(), tables=f"{sql.database}.*", scratchDir=tmp_path)
    assert len(frame.limit(3).collect()) == 3
    eventually(lambda: not list(tmp_path.glob("tidemill-task-*")))
    theirs = (
        "SELECT 1 FROM information_schema.processlist WHERE id != CONNECTION_ID() AND info LIKE '%`logs`%'"
    )
    eventually(lambda: not sql(theirs))
    threads = spark.range(4, numPartitions=2).mapInArrow(_threads, "name string").collect()
    assert {row.name for row in threads} == {"MainThread"}


def _threads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"name": [thread.name for thread in threading.enumerate()]})
