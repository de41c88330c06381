"""A whole feed, from a cluster into an archive."""

from __future__ import annotations

import pyarrow.parquet as pq

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.options import feed_options, open_sinks
from tidemill.testing.progress import feed_ended


def follow(tidb: Tidb, tmp_path) -> None:
    """Until the source's present end."""
    options = feed_options(
        {
            "data_dir": str(tmp_path / "state"),
            "until": "now",
            "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
            "sink": [{"url": f"file://{tmp_path / 'archive'}?format=parquet", "flush_seconds": 3600}],
        }
    )
    feed = Feed(options, open_sinks(options))
    feed.start()
    feed_ended(feed)
    assert feed.error is None


def read(tmp_path, table: str) -> list[dict]:
    paths = sorted((tmp_path / "archive").glob(f"table={table}/*/*"), key=lambda path: path.name)
    return [row for path in paths for row in pq.read_table(path, partitioning=None).to_pylist()]


def test_a_feed_leaves_an_archive_of_rows_changes_and_schemas(tmp_path):
    with Tidb(stores=1) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.orders (id bigint unsigned primary key, paid date)")
        with tidb.transaction() as txn:
            txn.insert("shop.orders", {"id": 2**64 - 1, "paid": "2024-02-29"})
        follow(tidb, tmp_path)
        [row] = read(tmp_path, "shop.orders")
        assert (row["op"], row["snapshot"]) == ("insert", True)
        assert row["after"] == {"id": 2**64 - 1, "paid": "2024-02-29"}

        tidb.execute("alter table shop.orders add column note varchar(20) default 'none'")
        with tidb.transaction() as txn:
            txn.update("shop.orders", 2**64 - 1, {"paid": "2024-03-01"})
        with tidb.transaction() as txn:
            txn.delete("shop.orders", 2**64 - 1)
        follow(tidb, tmp_path)
        assert [(row["op"], row["snapshot"]) for row in read(tmp_path, "shop.orders")] == [
            ("insert", True), ("update", False), ("delete", False),
        ]  # fmt: skip
        assert read(tmp_path, "shop.orders")[2]["before"]["note"] == "none"
        assert [row["op"] for row in read(tmp_path, "ddl")] == ["create", "alter"]
        assert "note" in read(tmp_path, "ddl")[1]["query"]
