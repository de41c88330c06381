"""Shards of two MariaDB servers in one table, in SQLite and in MariaDB, through schema changes and kills."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tidemill.cli import app
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.errors import SinkError
from tidemill.testing.child import CLI, Child
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import feed_ended

CHANGES = "ADD COLUMN c INT DEFAULT 5", "MODIFY c BIGINT DEFAULT 5"
ROUTE = {"tables": ["*.item_*"], "target": "whole.item"}


class Shards:
    """Tables of a schema on one server, each a source of its own, and their copy."""

    def __init__(self, server: MariaDb, schema: str, directory: Path) -> None:
        self.server = server
        self.schema = schema
        self.directory = directory
        self.sources = {"north": ["item_1", "item_2"], "south": ["item_3"]}
        self.sink: dict[str, Any] = {"name": "copy", "url": f"sqlite:///{directory}/copy.db"}
        self.sharding: dict[str, Any] = {}
        self.route: dict[str, Any] = dict(ROUTE)
        for number, table in enumerate(self.tables):
            self.execute(
                f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)",
                f"INSERT INTO {table} SELECT seq, 0 FROM seq_{number * 100 + 1}_to_{number * 100 + 20}",
            )

    @property
    def tables(self) -> list[str]:
        return [table for tables in self.sources.values() for table in tables]

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        return self.server.execute(*statements, database=self.schema)

    def found(self) -> dict[str, Any]:
        sections: list[dict[str, Any]] = [
            {
                **({"name": name} if name else {}),
                "url": self.server.url(),
                "tables": [f"{self.schema}.{table}" for table in tables],
            }
            for name, tables in self.sources.items()
        ]
        return {
            "name": "shards",
            "data_dir": str(self.directory / "state"),
            "until": "now",
            "source": sections if "" not in self.sources else sections[0],
            "sharding": self.sharding,
            "route": [self.route],
            "sink": [self.sink],
        }

    def feed(self) -> Feed:
        options = feed_options(self.found())
        return Feed(options, open_sinks(options))

    def run(self) -> Feed:
        """To the source's present end."""
        feed = self.feed()
        feed.start()
        feed_ended(feed)
        if feed.error is not None:
            raise feed.error
        return feed

    def select(self, columns: str) -> list[tuple[Any, ...]]:
        query = f"SELECT {columns} FROM {{}} ORDER BY id"
        if self.sink["url"].startswith("sqlite"):
            with closing(sqlite3.connect(self.directory / "copy.db")) as copy:
                return copy.execute(query.format('"whole.item"')).fetchall()
        return self.execute(query.format(f"{self.schema}_copy.item"))

    def union(self, columns: str) -> list[tuple[Any, ...]]:
        parts = " UNION ALL ".join(f"SELECT {columns} FROM {table}" for table in self.tables)
        return self.execute(f"SELECT {columns} FROM ({parts}) AS shards ORDER BY id")


@pytest.fixture
def shards(mariadb: MariaDb, database: str, tmp_path: Path) -> Shards:
    return Shards(mariadb, database, tmp_path)


@pytest.fixture
def to_mariadb(shards: Shards) -> Iterator[Shards]:
    copy = f"{shards.schema}_copy"
    shards.execute(f"CREATE DATABASE {copy}")
    shards.sink = {"name": "copy", "url": shards.server.url(), "schema": copy}
    yield shards
    shards.execute(f"DROP DATABASE {copy}")


@pytest.mark.parametrize("max_held_rows", [1000, 2])
def test_a_change_is_executed_once_all_shards_have_made_it(shards, max_held_rows):
    shards.sharding = {"max_held_rows": max_held_rows}
    shards.run()
    assert shards.select("id, v") == shards.union("id, v")
    shards.execute(
        "ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5",
        "INSERT INTO item_1 VALUES (50, 1, 1), (51, 1, 2), (52, 1, 3)",
        "UPDATE item_2 SET v = 2 WHERE id < 110",
        "ALTER TABLE item_2 ADD COLUMN c INT DEFAULT 5",
        "DELETE FROM item_1 WHERE id = 51",
        "ALTER TABLE item_1 MODIFY c BIGINT DEFAULT 5",
        "INSERT INTO item_1 VALUES (53, 1, 1099511627776)",
    )
    feed = shards.run()
    (lock,) = feed.status().locks
    assert (lock.owner, lock.unsynced, lock.further) == (
        f"north: {shards.schema}.item_1",
        [f"south: {shards.schema}.item_3"],
        1,
    )
    assert len(shards.select("id, v")) == 60
    for table in ("item_3", "item_2"):
        shards.execute(
            f"ALTER TABLE {table} {CHANGES[table == 'item_2']}",
            f"UPDATE {table} SET v = v + 1 WHERE id % 10 = 1",
        )
    shards.execute(f"ALTER TABLE item_3 {CHANGES[1]}", "UPDATE item_1 SET c = 7 WHERE id < 5")
    assert shards.run().status().locks == []
    assert shards.select("id, v, c") == shards.union("id, v, c")


@pytest.mark.parametrize("name", ["north", ""])
def test_rows_of_an_only_source_wait_beyond_the_checkpoint(shards, name):
    """Its tables have the source's name wherever they are told apart, also if it is the only one."""
    shards.sources = {name: ["item_1", "item_2"]}
    shards.run()
    shards.execute("ALTER TABLE item_1 ADD COLUMN c INT", "INSERT INTO item_1 VALUES (50, 1, 1)")
    assert shards.run().status().locks
    shards.execute("ALTER TABLE item_2 ADD COLUMN c INT", "UPDATE item_2 SET v = 1 WHERE id = 101")
    assert shards.run().status().locks == []
    assert shards.select("id, v, c") == shards.union("id, v, c")


def test_a_change_in_mariadb_is_executed_once_wherever_the_process_is_killed(to_mariadb):
    shards = to_mariadb
    shards.sharding = {"max_held_rows": 3}
    shards.run()
    shards.execute(
        "ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5",
        "INSERT INTO item_1 VALUES (50, 1, 1), (51, 1, 2), (52, 1, 3), (53, 1, 3), (54, 1, 3)",
        "ALTER TABLE item_3 ADD COLUMN c INT DEFAULT 5",
        "UPDATE item_3 SET c = 6 WHERE id > 210",
        "UPDATE item_2 SET v = 3",
        "ALTER TABLE item_2 ADD COLUMN c INT DEFAULT 5",
        "UPDATE item_1 SET v = 4",
    )
    config = write_config(shards)
    log = shards.directory / "feed.log"
    for point in ("shard.held:2", "sink.altered:2", "sink.altered:3", "shard.sought"):
        with Child([*CLI, "run", config, "--until", "now"], log, failpoint=point) as child:
            child.dies()
    shards.run()
    assert shards.select("id, v, c") == shards.union("id, v, c")


def write_config(shards: Shards) -> Path:
    found = shards.found()
    lines = [f"{key} = {json.dumps(found[key])}" for key in ("name", "data_dir")]
    lines += ["[sharding]", *(f"{key} = {json.dumps(value)}" for key, value in shards.sharding.items())]
    for name in ("source", "route", "sink"):
        for section in found[name]:
            lines += [f"[[{name}]]", *(f"{key} = {json.dumps(value)}" for key, value in section.items())]
    config = shards.directory / "feed.toml"
    config.write_text("\n".join(lines) + "\n")
    return config


def test_equal_keys_of_two_shards_are_refused_before_anything_is_applied(shards):
    shards.execute("INSERT INTO item_3 VALUES (7, 0), (115, 0)")
    with pytest.raises(
        SinkError, match=r"whole\.item: rows of its shards have the same key \(id\): \(7\) is in"
    ):
        shards.run()
    with closing(sqlite3.connect(shards.directory / "copy.db")) as copy:
        assert copy.execute("SELECT name FROM sqlite_master WHERE name LIKE 'whole%'").fetchall() == []


def test_an_extracted_column_tells_equal_keys_apart(shards):
    shards.route["extract"] = [
        {"column": "part", "part": "table", "regex": r"item_(\d+)"},
        {"column": "server", "part": "source", "in_key": False},
    ]
    shards.execute("INSERT INTO item_3 VALUES (7, 9)")
    shards.run()
    shards.execute("UPDATE item_3 SET v = 10 WHERE id = 7", "DELETE FROM item_1 WHERE id = 8")
    shards.run()
    found = shards.select("id, v, part, server")
    assert [row for row in found if row[0] in (7, 8)] == [(7, 0, "1", "north"), (7, 10, "3", "south")]
    assert len(found) == 60


def test_a_column_that_a_shard_has_can_t_be_extracted(shards):
    shards.route["extract"] = [{"column": "V", "part": "table"}]
    with pytest.raises(SinkError, match=r"route\.extract: column V is a column of north: \w+\.item_1 itself"):
        shards.run()


def test_the_shards_of_one_source_are_merged_too(shards):
    shards.sources = {"": shards.tables}
    shards.run()
    shards.execute(
        "ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5",
        "UPDATE item_1 SET c = 6",
        "ALTER TABLE item_2 ADD COLUMN c INT DEFAULT 5",
        "ALTER TABLE item_3 ADD COLUMN c INT DEFAULT 5",
        "UPDATE item_2 SET c = 7",
    )
    shards.run()
    assert shards.select("id, v, c") == shards.union("id, v, c")


def test_shards_that_differ_are_refused_before_anything_is_applied(shards):
    shards.execute("ALTER TABLE item_2 ADD COLUMN w INT")
    with pytest.raises(
        SinkError, match=r"item_2 can't be merged with north: \w+\.item_1 .*: it has column w more"
    ):
        shards.run()


def call(shards: Shards, *arguments: str) -> str:
    found = CliRunner().invoke(app, [arguments[0], str(write_config(shards)), *arguments[1:]])
    assert found.exit_code == 0, found.output
    return found.output


def test_shards_that_made_different_changes_are_named_with_the_position_to_skip(shards):
    shards.run()
    shards.execute("ALTER TABLE item_1 ADD COLUMN c INT", "ALTER TABLE item_2 ADD COLUMN d INT")
    feed = shards.feed()
    feed.start()
    feed_ended(feed)
    north = f"north: {shards.schema}.item"
    assert isinstance(feed.error, SinkError)
    assert str(feed.error).startswith(
        f"{north}_2 and {north}_1 are merged, and their schema changes differ: {north}_1: ALTER TABLE item_1 "
        f"ADD COLUMN c INT; {north}_2: ALTER TABLE item_2 ADD COLUMN d INT: shards must make the same changes"
    )
    assert 'run tidemill resume FEED --skip-ddl "binlog.' in str(feed.error)
    status = feed.status()
    assert (status.state, status.detail) == ("failed", str(feed.error))


def test_a_shard_in_a_conflict_waits_until_another_one_undoes_its_change(shards):
    shards.sharding = {"mode": "optimistic"}
    shards.run()
    shards.execute(
        "ALTER TABLE item_1 ADD COLUMN c INT",
        "INSERT INTO item_1 VALUES (50, 1, 1)",
        "ALTER TABLE item_2 ADD COLUMN c DATETIME",
        "INSERT INTO item_2 VALUES (150, 1, '2024-01-02 03:04:05')",
        "INSERT INTO item_3 VALUES (250, 1)",
    )
    shards.run()
    said = call(shards, "locks")
    assert "column c is int in north: " in said
    assert "undo the change in one of them" in said
    assert f"waits for: north: {shards.schema}.item_2\n" in said
    assert [id_ for (id_,) in shards.select("id") if id_ in (50, 150, 250)] == [50, 250]
    shards.execute("ALTER TABLE item_1 DROP COLUMN c")
    shards.run()
    assert shards.select("id, v") == shards.union("id, v")
    assert [row for row in shards.select("id, c") if row[1] is not None] == [(150, "2024-01-02 03:04:05")]


def test_a_conflict_that_lasts_stops_the_feed_and_undoing_it_lets_it_go_on(shards):
    shards.sharding = {"mode": "optimistic", "conflict_seconds": 0}
    shards.run()
    shards.execute(
        "ALTER TABLE item_1 ADD COLUMN c INT",
        "ALTER TABLE item_2 ADD COLUMN c DATETIME",
    )
    with pytest.raises(SinkError, match=r"column c is int in north: .* undo the change in one of them"):
        shards.run()
    shards.execute("ALTER TABLE item_1 DROP COLUMN c")
    shards.sharding["conflict_seconds"] = 60
    shards.run()
    assert shards.select("id, v") == shards.union("id, v")


def test_a_person_unlocks_a_change_that_a_shard_never_makes(shards):
    shards.run()
    shards.execute("ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5", "INSERT INTO item_1 VALUES (50, 1, 1)")
    shards.run()
    lock = "shards-`whole`.`item`"
    said = call(shards, "locks")
    assert f"waits for: north: {shards.schema}.item_2, south:" in said
    assert " s ago; 1 rows held" in said
    would = call(shards, "unlock", lock, "--dry-run")
    assert "would execute 'ALTER TABLE item_1" in would
    assert f"would let north: {shards.schema}.item_1 go on, with 1 held rows" in would
    shards.run()
    assert len(shards.select("id, v")) == 60
    call(shards, "unlock", lock)
    shards.run()  # resolves it, although nothing else is left to be read
    assert len(shards.select("id, v, c")) == 61
    shards.execute("UPDATE item_2 SET v = 9 WHERE id = 101", "INSERT INTO item_3 VALUES (300, 0)")
    shards.run()
    found = shards.select("id, v, c")
    assert [row for row in found if row[0] in (1, 50, 101, 300)] == [
        (1, 0, 5), (50, 1, 1), (101, 9, 5), (300, 0, 5),
    ]  # fmt: skip
    for table in ("item_3", "item_2"):
        shards.execute(f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5", f"UPDATE {table} SET c = 6")
    shards.run()
    assert shards.select("id, v, c") == shards.union("id, v, c")
    assert call(shards, "locks") == "no schema change waits for shards\n"
