"""Online schema changes of shards by gh-ost and pt-online-schema-change."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest


def gh_ost(table: str, change: str, columns: str = "id, v") -> list[str]:
    """The statements of gh-ost, without those that only it needs."""
    return [
        f"CREATE TABLE _{table}_ghc (id INT PRIMARY KEY, value TEXT)",
        f"INSERT INTO _{table}_ghc VALUES (1, 'copying')",
        f"CREATE TABLE _{table}_gho LIKE {table}",
        f"ALTER TABLE _{table}_gho {change}",
        f"INSERT INTO _{table}_gho ({columns}) SELECT {columns} FROM {table}",
        f"CREATE TABLE _{table}_del (id INT PRIMARY KEY) COMMENT = 'ghost-cut-over-sentry'",
        f"DROP TABLE _{table}_del",
        f"RENAME TABLE {table} TO _{table}_del, _{table}_gho TO {table}",
        f"DROP TABLE _{table}_ghc",
        f"DROP TABLE _{table}_del",
    ]


def pt_osc(table: str, change: str) -> list[str]:
    """The statements of pt-online-schema-change, without its triggers."""
    return [
        f"CREATE TABLE _{table}_new LIKE {table}",
        f"ALTER TABLE _{table}_new {change}",
        f"INSERT INTO _{table}_new (id, v) SELECT id, v FROM {table}",
        f"RENAME TABLE {table} TO _{table}_old, _{table}_new TO {table}",
        f"DROP TABLE IF EXISTS _{table}_old",
    ]


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
def test_an_online_schema_change_of_each_shard_is_one_of_the_merged_table(twins, mode):
    twins.sharding = {"mode": mode, "max_held_rows": 2}
    twins.route["tables"] = [f"{twins.schema}.*"]
    twins.execute("north", "CREATE TABLE _item_2_old (id INT PRIMARY KEY)")
    twins.run()
    change = "ADD COLUMN c INT DEFAULT 5"
    interrupted = gh_ost("item_1", "ADD COLUMN other INT")[:4]
    twins.execute("north", *interrupted, "DROP TABLE _item_1_gho, _item_1_ghc")
    twins.execute(
        "north", *gh_ost("item_1", change), "INSERT INTO item_1 VALUES (50, 0, 6), (51, 0, 7), (52, 0, 8)"
    )
    twins.execute("south", *pt_osc("item_1", change)[:3])
    (lock,) = twins.run().status().locks
    assert f"north: {twins.schema}.item_1" in [*lock.synced, lock.owner]
    assert mode == "optimistic" or "ALTER TABLE _item_1_gho ADD COLUMN c" in lock.statement
    twins.execute(
        "south", *pt_osc("item_1", change)[3:], "UPDATE item_1 SET c = 9", *gh_ost("item_2", change)
    )
    twins.execute("north", *gh_ost("item_1", "ENGINE = InnoDB", "id, v, c"), "DROP TABLE _item_2_old")
    twins.execute("north", f"ALTER TABLE item_2 {change}", "INSERT INTO item_2 VALUES (150, 1, 1)")
    assert twins.run().status().locks == []
    assert twins.rows("id, v, c") == twins.union("id, v, c")
    with closing(sqlite3.connect(twins.directory / "copy.db")) as copy:
        names = copy.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%item%'")
        assert names.fetchall() == [("whole.item",)]
