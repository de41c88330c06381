"""A whole feed, from a cluster into an archive."""

from __future__ import annotations

import pyarrow.parquet as pq

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.errors import TidemillError
from tidemill.sink.files import directory
from tidemill.store import disk
from tidemill.testing.progress import feed_ended


def follow(tidb: Tidb, tmp_path) -> TidemillError | None:
    """Until the source's present end; return the feed's error."""
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
    return feed.error


def read(tmp_path, table: str) -> list[dict]:
    paths = sorted((tmp_path / "archive").glob(f"table={table}/*/*"), key=lambda path: path.name)
    return [row for path in paths for row in pq.read_table(path, partitioning=None).to_pylist()]


def test_a_feed_leaves_an_archive_of_rows_changes_and_schemas(tmp_path):
    with Tidb(stores=1) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.orders (id bigint unsigned primary key, paid date)")
        with tidb.transaction() as txn:
            txn.insert("shop.orders", {"id": 2**64 - 1, "paid": "2024-02-29"})
        assert follow(tidb, tmp_path) is None
        [row] = read(tmp_path, "shop.orders")
        assert (row["op"], row["snapshot"]) == ("insert", True)
        assert row["after"] == {"id": 2**64 - 1, "paid": "2024-02-29"}

        tidb.execute("alter table shop.orders add column note varchar(20) default 'none'")
        with tidb.transaction() as txn:
            txn.update("shop.orders", 2**64 - 1, {"paid": "2024-03-01"})
        with tidb.transaction() as txn:
            txn.delete("shop.orders", 2**64 - 1)
        assert follow(tidb, tmp_path) is None
        assert [(row["op"], row["snapshot"]) for row in read(tmp_path, "shop.orders")] == [
            ("insert", True), ("update", False), ("delete", False),
        ]  # fmt: skip
        assert read(tmp_path, "shop.orders")[2]["before"]["note"] == "none"
        assert [row["op"] for row in read(tmp_path, "ddl")] == ["create", "alter"]
        assert "note" in read(tmp_path, "ddl")[1]["query"]


def test_rows_that_the_end_cannot_write_fail_the_feed_and_the_next_run_writes_them(tmp_path, monkeypatch):
    def full(path, content):
        if path.name.isdecimal():
            raise OSError(28, "No space left on device")
        disk.replace(path, content)

    with Tidb(stores=1) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.orders (id bigint primary key)")
        with tidb.transaction() as txn:
            txn.insert("shop.orders", {"id": 1})
        monkeypatch.setattr(directory, "replace", full)
        error = follow(tidb, tmp_path)
        assert f"can't write {tmp_path}/archive: No space left on device" in str(error)
        assert "the next start writes their files" in str(error)
        assert read(tmp_path, "shop.orders") == []
        monkeypatch.undo()
        assert follow(tidb, tmp_path) is None
        assert [row["after"] for row in read(tmp_path, "shop.orders")] == [{"id": 1}]


def test_a_table_whose_name_is_too_long_for_a_file_is_in_the_archive(tmp_path):
    with Tidb(stores=1) as tidb:
        tidb.execute("create database shop")
        tidb.execute(f"create table shop.`{'録' * 50}` (id bigint primary key)")
        with tidb.transaction() as txn:
            txn.insert(f"shop.{'録' * 50}", {"id": 1})
        assert follow(tidb, tmp_path) is None
        assert [row["after"] for row in read(tmp_path, "shop.%E9%8C%B2*~*")] == [{"id": 1}]
