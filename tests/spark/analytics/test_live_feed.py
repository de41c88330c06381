"""A look at the store of a feed that is running."""

from __future__ import annotations

import json

import tidemill
from tidemill.codec.tidb.key import record_key
from tidemill.spark.analytics.analyze import FeedStore, analysis
from tidemill.testing.progress import eventually

ROWS = 300


def test_what_a_running_feed_has_in_buffers_is_seen(spark, tidb, tmp_path):
    tidb.execute("create table shop.orders (id int primary key)")
    directory = tmp_path / "state"
    tables, sorter = ["shop.*"], {"memory_bytes": 0}  # all goes through its store
    with tidemill.open(f"tikv://{tidb.pd_address}", tables, data_dir=directory, sorter=sorter) as feed:
        insert(tidb, [0])
        assert len(next(iter(feed)).rows) == 1  # the snapshot is over
        # Somebody's lock: nothing above it is resolved, so what comes then stays in the store.
        key = record_key(tidb.schema.table("shop.orders").info.id, 1_000_000)
        tidb.prewrite(tidb.tso(), [("put", key, b"1")], ttl_ms=3_600_000)
        insert(tidb, range(1, ROWS))
        eventually(lambda: feed.status().sorter_disk_bytes > ROWS * 30)
        assert not list(directory.glob("scratch/*/*.sst"))
        found = analysis(spark, FeedStore(directory, directory / "scratch"), None)
    assert f">{ROWS - 1}<" in found.page or f">{ROWS}<" in found.page  # the first row may be gone
    assert json.loads(found.plan or "")["version"] == 1


def insert(tidb, numbers):
    with tidb.transaction() as txn:
        for number in numbers:
            txn.insert("shop.orders", (number,))
