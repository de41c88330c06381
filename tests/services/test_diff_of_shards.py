"""`tidemill diff` of merged tables: the union of the shards of two servers against one table."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from threading import Event, Thread
from typing import Any

import pytest

from tidemill.compare import TableResult, chunks, open_diff
from tidemill.compare.report import line_of
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually, joined

from .twins import TABLES, Twins

EXTRACTED = [{"column": "server", "part": "source"}]


def given(twins: Twins) -> dict[str, Any]:
    return twins.found() | {
        "name": "twins",
        "data_dir": str(twins.directory / "state"),
        "sharding": twins.sharding,
    }


def lines(twins: Twins) -> list[str]:
    with open_diff(given(twins)) as found:
        return [line_of(one) for one in found]


@pytest.fixture
def execute(request: pytest.FixtureRequest, twins: Twins) -> Callable[[str], None]:
    """Run a statement in the target, whose merged table is {}."""
    if request.param == "sqlite":

        def run(statement: str) -> None:
            with closing(sqlite3.connect(twins.directory / "copy.db")) as copy:
                copy.execute(statement.format('"whole.item"'))
                copy.commit()

        return run
    if request.param == "mysql":
        schema = request.getfixturevalue("mysql_database")
        client = Client(request.getfixturevalue("mysql97"), schema)
        twins.sink["url"] = client.server.url(schema)
        return lambda statement: client(statement.format("item")) and None
    server = request.getfixturevalue("postgresql")
    twins.sink["url"] = server.url(request.getfixturevalue("postgres_database"))

    def run_there(statement: str) -> None:
        with server.connect(dbname=request.getfixturevalue("postgres_database")) as connection:
            connection.execute(statement.format("whole.item"))

    return run_there


@pytest.mark.parametrize(
    ("execute", "extract"),
    [("sqlite", EXTRACTED), ("mysql", []), ("mysql", EXTRACTED), ("postgresql", [])],
    indirect=["execute"],
)
def test_planted_differences_of_a_merged_table_are_found_and_none_else(
    twins: Twins,
    execute: Callable[[str], None],
    extract: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 6)
    monkeypatch.setattr(chunks, "PAGE_ROWS", 4)
    twins.execute("north", "CREATE TABLE plain (id INT PRIMARY KEY)", "INSERT INTO plain VALUES (1)")
    twins.route["extract"] = extract
    if extract:
        twins.execute("south", "INSERT INTO item_1 VALUES (1, 9)")
    twins.run()
    count = 20 + len(extract)
    equal = [f"{twins.schema}.plain: 1 rows, no differences", f"whole.item: {count} rows, no differences"]
    assert lines(twins) == equal
    execute("UPDATE {} SET v = 7 WHERE id = 101")
    execute("DELETE FROM {} WHERE id = 1004")
    execute(f"INSERT INTO {{}} VALUES (5000, 1{', ' + repr('east') if extract else ''})")
    north, south, east = (f", server='{name}'" if extract else "" for name in ("north", "south", "east"))
    *found, total = [line for line in lines(twins) if line.startswith("whole.item")]
    assert sorted(found) == [
        f"whole.item id=1004{south}: missing in the target",
        f"whole.item id=101{north}: v is 0 in the source, 7 in the target",
        f"whole.item id=5000{east}: only in the target",
    ]
    assert total == f"whole.item: {count} rows, 3 differences (1 missing, 1 extra, 1 changed)"
    with open_diff(given(twins)) as compared:
        assert [compared.apply() for one in compared if not isinstance(one, TableResult)] == [True] * 3
    assert lines(twins) == equal


@pytest.mark.parametrize("mode", ["pessimistic", pytest.param("optimistic", marks=pytest.mark.soak)])
def test_shards_in_different_schemas_are_not_compared_and_the_lock_is_named(twins: Twins, mode: str) -> None:
    twins.sharding = {"mode": mode}
    twins.run()
    twins.execute("north", "ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5")
    twins.run()
    (line,) = lines(twins)
    assert line.startswith(
        "whole.item: its shards are in different schemas, by the lock twins-`whole`.`item`: "
    )
    assert f"north: {twins.schema}.item_1" in line or mode == "optimistic"
    twins.execute("north", "ALTER TABLE item_2 ADD COLUMN c INT DEFAULT 5")
    twins.execute("south", *(f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5" for table in TABLES))
    twins.run()
    assert lines(twins) == ["whole.item: 20 rows, no differences"]


def test_only_true_differences_are_reported_while_shards_are_written(twins: Twins) -> None:
    twins.run()
    with closing(sqlite3.connect(twins.directory / "copy.db")) as copy:
        copy.execute('UPDATE "whole.item" SET v = 99 WHERE id = 104')
        copy.commit()
    options = feed_options(given(twins))
    feed = Feed(options, open_sinks(options))
    feed.start()
    stopping, written = Event(), [0]

    def write() -> None:
        while not stopping.is_set():
            number = written[0]
            twins.execute("north", f"UPDATE item_1 SET v = {number}", "DELETE FROM item_1 WHERE id = 4")
            twins.execute("south", f"REPLACE INTO item_2 VALUES ({1200 + number % 50}, {number})")
            twins.execute("north", f"INSERT INTO item_1 VALUES (4, {number})")
            written[0] += 1

    writer = Thread(target=write)
    writer.start()
    try:
        eventually(lambda: written[0] > 5)
        first, *rest = lines(twins)
        assert first == "whole.item id=104: v is 0 in the source, 99 in the target"
        assert len(rest) == 1
    finally:
        stopping.set()
        joined(writer)
        feed.stop()
        feed.wait()
    assert feed.error is None


def test_a_feed_with_filters_is_not_compared(twins: Twins) -> None:
    twins.filters = [{"tables": ["*.*"], "where": "v = 1"}]
    with pytest.raises(ConfigError, match=r"^filter: a comparison has no filters"):
        open_diff(given(twins))
