"""Transforms and Canal's expressions in a feed."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options


def test_a_sink_gets_the_tables_and_columns_of_its_feed_file(tmp_path):
    with Tidb(stores=1) as tidb:
        tidb.execute("create database shop")
        for table in ("users", "secrets"):
            tidb.execute(f"create table shop.{table} (id bigint primary key, name varchar(20), n bigint)")
            with tidb.transaction() as txn:
                txn.insert(f"shop.{table}", {"id": 1, "name": "ann", "n": 5})
        options = feed_options(
            {
                "data_dir": str(tmp_path / "data"),
                "until": "now",
                "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
                "sink": [{"url": f"sqlite:///{tmp_path}/copy.db", "black_regex": r"shop\.sec.*"}],
                "transform": [{"tables": ["shop.users"], "drop": ["n"], "mask": {"name": "***"}}],
            }
        )
        feed = Feed(options, open_sinks(options))
        feed.start()
        feed.wait()
        assert feed.error is None
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute('SELECT * FROM "shop.users"').fetchall() == [(1, "***")]
        names = [name for (name,) in copy.execute("SELECT name FROM sqlite_master")]
        assert not any("secrets" in name for name in names)
