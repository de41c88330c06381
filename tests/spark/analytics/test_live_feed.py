"""A look at the store of a feed that is running."""

from __future__ import annotations

import json

import tidemill
from tidemill.spark.analytics import analyze_store
from tidemill.spark.analyze import analysis

ROWS = 300


def test_what_a_running_feed_has_in_buffers_is_seen(spark, tidb, tmp_path):
    tidb.execute("create table shop.orders (id int primary key)")
    directory = tmp_path / "state"
    tables, sorter = ["shop.*"], {"memory_bytes": 0}  # all goes through its store
    with tidemill.open(f"tikv://{tidb.pd_address}", tables, data_dir=directory, sorter=sorter) as feed:
        for first in (0, ROWS):  # the first may be in the snapshot, which doesn't go through the store
            with tidb.transaction() as txn:
                for number in range(first, first + ROWS):
                    txn.insert("shop.orders", (number,))
            assert len(next(iter(feed)).rows) == ROWS  # and isn't acknowledged
        assert analyze_store(spark, directory / "scratch").tables == []
        found = analysis(spark, directory, None)
        (table,) = analyze_store(spark, directory / "scratch").tables
    assert table.changes in (ROWS, 2 * ROWS)
    assert f">{table.changes}<" in found.page
    assert json.loads(found.plan or "")["version"] == 1
