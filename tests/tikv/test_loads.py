"""Tables loaded again while a feed of TiKV runs, after changes that its log doesn't have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.options import checkpoint_file, feed_options
from tidemill.events import CreateTable, Ddl, DropTable, Item, RenameTables, Transaction, TruncateTable
from tidemill.sink.python import PythonSink
from tidemill.sources import tikv_loads
from tidemill.testing.progress import eventually, feed_ended

from ..pump.test_schema_changes import Copy
from ..pump.world import History

PARTS = "partition by range (id) (partition a values less than (100), partition b values less than maxvalue)"
POINTS = ["snapshot.chunk_read:2", "sink.committed:4", "sink.before_commit:5", "snapshot.chunk_read:5"]


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=1, tick_seconds=0.02) as made:
        yield made


@pytest.fixture
def shop(tidb: Tidb) -> Tidb:
    for database in ("shop", "depot"):
        tidb.execute(f"create database {database}")
    for name in ("shop.plain", "shop.parted", "shop.gone", "depot.moved", "shop.few", "depot.few"):
        parts = PARTS if name == "shop.parted" else ""
        tidb.execute(f"create table {name} (id int primary key, n varchar(20)) {parts}")
        fill(tidb, name, range(10) if name.endswith("few") else range(90, 110))
    tidb.execute("create table shop.loose (id int primary key nonclustered, n varchar(20))")
    fill(tidb, "shop.loose", range(90, 110))
    return tidb


def fill(tidb: Tidb, name: str, keys: range) -> None:
    with tidb.transaction() as txn:
        for key in keys:
            txn.insert(name, {"id": key, "n": f"row {key}"})


@pytest.mark.parametrize(
    "statements",
    [
        ["rename table depot.moved to shop.moved"],
        ["rename table shop.plain to shop.old, depot.moved to shop.plain"],
        ["drop table shop.gone", "recover table shop.gone"],
        ["drop table shop.gone", "flashback table shop.gone to shop.found"],
        ["alter table shop.parted truncate partition a"],
        ["alter table shop.parted drop partition a"],
        ["alter table shop.parted exchange partition a with table shop.few"],
        ["alter table shop.parted exchange partition a with table depot.few"],
        ["alter table shop.parted reorganize partition a, b into (partition c values less than maxvalue)"],
        ["alter table shop.plain modify column n char(20)"],
        ["alter table shop.loose drop primary key"],
    ],
    ids=lambda statements: statements[-1],
)
def test_a_copy_after_the_statement_is_the_same_as_a_new_one(shop, tmp_path, statements):
    copy = Copy(tmp_path, shop, "tikv", "copy", ["shop.*"])
    copy.run()
    for statement in statements:
        shop.execute(statement)
        for table in shop.schema.tables("shop"):
            number = 100 * shop.schema.new_id()
            fill(shop, f"shop.{table.info.name}", range(number, number + 10))
    copy.run()
    fresh = Copy(tmp_path, shop, "tikv", "fresh", ["shop.*"])
    fresh.run()
    assert copy.tables() == fresh.tables()


def test_rows_that_share_a_primary_key_while_it_is_dropped(shop, tmp_path):
    copy = Copy(tmp_path, shop, "tikv", "copy", ["shop.*"])
    copy.run()
    shop.execute("alter table shop.loose drop primary key", lambda: fill(shop, "shop.loose", range(90, 95)))
    copy.run()
    ids = [row[0] for row in copy.tables()["shop.loose"][1]]
    assert sorted(ids) == sorted([*range(90, 110), *[*range(90, 95)] * 3])
