"""Shards of the same schema and name on two servers in one table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import chain

import pytest

from tidemill.errors import CheckpointError, SourceError
from tidemill.testing.child import CLI, Child

from .twins import TABLES


@pytest.mark.parametrize("max_held_rows", [1000, 2])
def test_shards_of_one_name_are_told_apart_wherever_the_process_is_killed(twins, max_held_rows):
    twins.sharding = {"max_held_rows": max_held_rows}
    config, log = twins.config(), twins.directory / "feed.log"
    with Child([*CLI, "run", config, "--until", "now"], log, failpoint="sink.committed:3") as child:
        child.dies()
    twins.both("UPDATE item_1 SET v = 1")
    twins.run()
    assert twins.rows() == twins.union()
    twins.execute("north", "ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5", "UPDATE item_1 SET c = 6")
    twins.execute("south", "UPDATE item_1 SET v = 2 WHERE id = 1001", "DELETE FROM item_1 WHERE id = 1002")
    (lock,) = twins.run().status().locks
    assert lock.unsynced == [
        f"north: {twins.schema}.item_2", f"south: {twins.schema}.item_1", f"south: {twins.schema}.item_2",
    ]  # fmt: skip
    assert [row for row in twins.rows() if 1000 < row[0] < 1004] == [(1001, 2), (1003, 1)]
    twins.execute("north", "INSERT INTO item_1 VALUES (50, 0, 0), (51, 0, 0), (52, 0, 0)")
    twins.execute("south", *(f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5" for table in TABLES))
    twins.execute("south", "UPDATE item_1 SET c = 7", "INSERT INTO item_1 VALUES (1050, 0, 0)")
    twins.execute("north", "ALTER TABLE item_2 ADD COLUMN c INT DEFAULT 5")
    for point in ("shard.held:3", "shard.synced:1"):
        with Child([*CLI, "run", config, "--until", "now"], log, failpoint=point) as child:
            child.dies()
    assert twins.run().status().locks == []
    assert twins.rows("id, v, c") == twins.union("id, v, c")


def test_shards_of_one_name_differ_in_optimistic_mode(twins):
    twins.sharding = {"mode": "optimistic"}
    twins.run()
    twins.execute("south", "ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5", "UPDATE item_1 SET c = 6")
    twins.execute("north", "UPDATE item_1 SET v = 3")
    (lock,) = twins.run().status().locks
    assert lock.synced == [f"south: {twins.schema}.item_1"]
    assert twins.rows("id, c")[0] == (0, 5)
    twins.both("ALTER TABLE item_2 ADD COLUMN c INT DEFAULT 5")
    twins.execute("north", "ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5")
    assert twins.run().status().locks == []
    assert twins.rows("id, v, c") == twins.union("id, v, c")


@pytest.mark.parametrize(
    ("names", "target", "merged"),
    [
        ("*", "whole.{table}", "whole.item_{}"),
        (r"~ITEM_(?P<part>\d+)", "{source}.part_{table.part}", ""),
    ],
)
def test_targets_are_made_of_the_names_of_shards(twins, names, target, merged):
    tables = [f"{twins.schema.upper()}.{names}"]
    twins.route = {"tables": tables, "target": target, "case_sensitive": False}
    twins.run()
    twins.both("ALTER TABLE item_2 ADD COLUMN c INT DEFAULT 5", "UPDATE item_2 SET v = 4")
    assert twins.run().status().locks == []
    for number, table in enumerate(TABLES, 1):
        columns = "id, v, c" if number == 2 else "id, v"
        by_source = {
            name: sorted(twins.execute(name, f"SELECT {columns} FROM {table}")) for name in twins.servers
        }
        if merged:
            assert twins.rows(columns, merged.format(number)) == sorted(chain(*by_source.values()))
        else:
            found = {name: twins.rows(columns, f"{name}.part_{number}") for name in twins.servers}
            assert found == by_source


def test_equal_keys_of_shards_of_one_name_are_told_apart_by_their_source(twins):
    twins.route["extract"] = [{"column": "server", "part": "source"}]
    twins.execute("south", "INSERT INTO item_1 VALUES (1, 9)")
    twins.run()
    assert [row for row in twins.rows("id, v, server") if row[0] == 1] == [(1, 0, "north"), (1, 9, "south")]


def test_a_table_of_two_servers_without_a_route_is_refused(twins):
    twins.both("CREATE TABLE other (id INT PRIMARY KEY)")
    with pytest.raises(
        SourceError, match=r"\.other is followed in source north and in source south, and a target has one"
    ):
        twins.run()


def test_a_sink_s_tables_are_chosen_by_their_names_in_the_sources(twins):
    twins.execute("north", "CREATE TABLE own (id INT PRIMARY KEY)", "INSERT INTO own VALUES (1)")
    twins.sink["tables"] = ["*.item_*"]
    twins.run()
    assert twins.rows() == twins.union()
    with closing(sqlite3.connect(twins.directory / "copy.db")) as copy:
        assert copy.execute("SELECT name FROM sqlite_master WHERE name LIKE '%own'").fetchall() == []


def test_filtered_events_of_shards_are_dropped_before_they_are_merged(twins):
    tables = [f"{twins.schema}.*"]
    twins.filters = [{"tables": tables, "events": ["delete"]}, {"tables": tables, "sql": r"/\* own \*/"}]
    twins.run()
    kept = twins.rows()
    twins.execute("north", "ALTER TABLE item_1 ADD COLUMN own INT DEFAULT 1 /* own */", "DELETE FROM item_1")
    twins.execute("south", "DELETE FROM item_2", "INSERT INTO item_2 VALUES (1999, 3)")
    twins.execute("north", "INSERT INTO item_1 VALUES (99, 3, 4)")
    assert twins.run().status().locks == []
    assert twins.rows() == sorted([*kept, (99, 3), (1999, 3)])


def test_a_source_that_is_gone_from_the_feed_is_named(twins):
    twins.run()
    del twins.servers["south"]
    with pytest.raises(CheckpointError, match=r"sink copy has what came from north: .*, south: .*, and "):
        twins.run()


def test_a_shard_that_is_gone_doesn_t_keep_a_change_waiting(twins):
    twins.run()
    twins.execute("north", *(f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5" for table in TABLES))
    twins.execute("south", "ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5", "DROP TABLE item_2")
    assert twins.run().status().locks == []
    kept = [(key, 0, 5) for key in range(1100, 1105)]
    assert [row for row in twins.rows("id, v, c") if row[0] >= 1100] == kept
