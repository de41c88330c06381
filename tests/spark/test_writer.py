"""Rows of the raw envelope into SQL databases, by Spark."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.spark.offsets.mysql import MysqlOffsets
from tidemill.spark.read.options import read_options
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import feed_ended

from . import history
from .job import completed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = ("orders", "pairs", "logs")


def read(spark: SparkSession, source: str, **options: Any) -> DataFrame:
    return spark.read.format("tidemill").options(source=source, **options).load()


def write(frame: DataFrame, url: str, **options: Any) -> None:
    frame.write.format("tidemill").mode("append").options(sink=url, **options).save()


def follow(
    spark: SparkSession,
    source: str,
    sink: str,
    checkpoint: Path,
    *,
    to: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Everything that is there now."""
    frame = spark.readStream.format("tidemill").options(source=source, **options).load()
    writer = frame.writeStream.format("tidemill").options(
        sink=sink, checkpointLocation=str(checkpoint), **to or {}
    )
    completed(writer.trigger(availableNow=True).start)


def rows_in_sqlite(path: Path, schema: str) -> dict[str, list[dict[str, Any]]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return {
            name: [dict(row) for row in connection.execute(f'SELECT * FROM "{schema}.{name}" ORDER BY id')]
            for name in TABLES
        }


def copy_locally(source: str, tables: str, sink: str, directory: Path) -> None:
    options = feed_options(
        {
            "data_dir": str(directory / "local"),
            "until": "now",
            "source": {"url": source, "tables": [tables]},
            "sink": [{"url": sink}],
        }
    )
    feed = Feed(options, open_sinks(options))
    feed.start()
    feed_ended(feed)
    assert feed.error is None


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.soak), 3])
def test_a_snapshot_and_a_stream_of_tikv_give_the_rows_of_the_local_feed(
    spark: SparkSession, tidb: Tidb, tmp_path: Path, partitions: int
) -> None:
    source, sink = f"tikv://{tidb.pd_address}", f"sqlite:///{tmp_path}/spark.db"
    before = history.on_tidb(tidb)
    write(read(spark, source, tables="shop.*", ts=before, partitions=partitions), sink)
    options = {"tables": "shop.*", "startingTs": before, "partitions": partitions}
    follow(spark, source, sink, tmp_path / "query", **options)
    tidb.execute("alter table shop.orders drop column colour")
    with tidb.transaction() as txn:
        txn.insert("shop.orders", {"id": 100, "note": "later", "price": "1.00"})
    follow(spark, source, sink, tmp_path / "query", **options)
    copy_locally(source, "shop.*", f"sqlite:///{tmp_path}/local.db", tmp_path)
    found = rows_in_sqlite(tmp_path / "spark.db", "shop")
    assert found == rows_in_sqlite(tmp_path / "local.db", "shop")
    assert len(found["orders"]) == 13


def test_a_stream_of_mariadb_into_mariadb_gives_the_same_rows(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    """By the data source alone: a snapshot of empty tables, then what happens."""
    tables, copy = f"{sql.database}.*", f"{sql.database}_copy"
    history.tables_on_mariadb(sql)
    sink = {"sink.schema": copy}
    write(read(spark, mariadb.url(), tables=tables), mariadb.url(), **sink)
    position = MysqlOffsets(read_options({"source": mariadb.url(), "tables": tables})).latest().position
    history.on_mariadb(sql)
    options = {"tables": tables, "startingPosition": position, "partitions": 2, "maxRowsPerBatch": 3000}
    follow(spark, mariadb.url(), mariadb.url(), tmp_path / "query", to=sink, **options)
    for table in TABLES:
        found = sql(f"SELECT * FROM {copy}.{table} ORDER BY id")
        assert found == sql(f"SELECT * FROM {table} ORDER BY id")
    assert len(found) > 5000
    marks = sql(f"SELECT checkpoint FROM {copy}.tidemill_checkpoint WHERE checkpoint LIKE '%batch%'")
    assert any("batch 0 of" not in mark for (mark,) in marks), "it came in several batches"
    sql(f"DROP DATABASE {copy}")


def test_rows_out_of_order_are_refused_and_sorted_ones_are_not(
    spark: SparkSession, tidb: Tidb, tmp_path: Path
) -> None:
    source, sink = f"tikv://{tidb.pd_address}", f"sqlite:///{tmp_path}/spark.db"
    before = history.on_tidb(tidb)
    write(read(spark, source, tables="shop.*", ts=before), sink)
    frame = read(spark, source, tables="shop.*", fromTs=before, values="none").coalesce(1).cache()
    with pytest.raises(Exception, match="don't come in order"):
        write(frame.orderBy("commit_ts", ascending=False), sink)
    shuffled = frame.repartition(2, "schema", "table")
    write(shuffled.sortWithinPartitions("commit_ts", "start_ts", "sequence"), sink)
    frame.unpersist()
    found = rows_in_sqlite(tmp_path / "spark.db", "shop")
    assert [len(found[name]) for name in TABLES] == [12, 8, 4]


def test_a_batch_writer_inside_of_a_stream_knows_the_query_and_its_batch(
    spark: SparkSession, tidb: Tidb, tmp_path: Path
) -> None:
    source, sink = f"tikv://{tidb.pd_address}", f"sqlite:///{tmp_path}/spark.db"
    tidb.execute("create table shop.orders (id bigint primary key)")
    write(read(spark, source, tables="shop.*"), sink)
    before = tidb.tso()
    with tidb.transaction() as txn:
        txn.insert("shop.orders", {"id": 1})
    frame = (
        spark.readStream.format("tidemill").options(source=source, tables="shop.*", startingTs=before).load()
    )
    query = frame.writeStream.foreachBatch(lambda rows, _number: write(rows, sink)).trigger(availableNow=True)
    started = completed(query.option("checkpointLocation", str(tmp_path / "query")).start)
    with closing(sqlite3.connect(tmp_path / "spark.db")) as connection:
        feeds = [feed for (feed,) in connection.execute("SELECT feed FROM tidemill_checkpoint WHERE ts > 0")]
        assert connection.execute('SELECT id FROM "shop.orders"').fetchall() == [(1,)]
    assert f"{started.id}/0" in feeds
