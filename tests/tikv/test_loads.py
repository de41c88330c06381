"""Tables loaded again while a feed of TiKV runs, after changes that its log doesn't have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidemill.emulator.sql.sql import Tidb

from ..pump.test_schema_changes import Copy

PARTS = "partition by range (id) (partition a values less than (100), partition b values less than maxvalue)"


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=1, tick_seconds=0.02) as made:
        for database in ("shop", "depot"):
            made.execute(f"create database {database}")
        yield made


def fill(tidb: Tidb, name: str, keys: range) -> None:
    with tidb.transaction() as txn:
        for key in keys:
            txn.insert(name, {"id": key, "n": f"row {key}"})


@pytest.mark.parametrize(
    "statement",
    [
        "rename table depot.moved to shop.moved",
        "alter table shop.parted truncate partition a",
        "alter table shop.parted drop partition a",
        "alter table shop.plain modify column n char(20)",
    ],
)
def test_the_copy_is_the_same_as_a_new_one(tidb, tmp_path, statement):
    for name in ("shop.plain", "shop.parted", "depot.moved"):
        parts = PARTS if name == "shop.parted" else ""
        tidb.execute(f"create table {name} (id int primary key, n varchar(20)) {parts}")
        fill(tidb, name, range(90, 110))
    copy = Copy(tmp_path, tidb, "tikv", "copy", ["shop.*"])
    copy.run()
    tidb.execute(statement)
    for table in tidb.schema.tables("shop"):
        fill(tidb, f"shop.{table.info.name}", range(110, 120))
    copy.run()
    fresh = Copy(tmp_path, tidb, "tikv", "fresh", ["shop.*"])
    fresh.run()
    assert copy.tables() == fresh.tables()
