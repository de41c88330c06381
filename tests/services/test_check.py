"""`check` refuses what `run` refuses, in the same words, and its advice about other patterns leads on."""

from __future__ import annotations

import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tidemill.engine.options import feed_options
from tidemill.engine.preflight import check_feed
from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import MariaDb

from .twins import Twins


def findings(place: CopiedTable) -> list[str]:
    said = place.call("check", str(place.config)).out.splitlines()
    return [line.split(maxsplit=1)[1] for line in said if line.startswith("error")]


@pytest.fixture
def added(mariadb: MariaDb, database: str, tmp_path) -> CopiedTable:
    """A feed of one table, whose patterns match a second one by now."""
    place = CopiedTable(tmp_path, mariadb, database)
    place.configure(tables=[f"{database}.item"])
    place.execute(f"CREATE TABLE {database}.added (id INT PRIMARY KEY)")
    place.execute(f"INSERT INTO {database}.added VALUES (1), (2)")
    place.continues()
    place.configure(tables=[f"{database}.item", f"{database}.added"])
    return place


def added_rows(place: CopiedTable) -> list[tuple[int]]:
    with closing(sqlite3.connect(place.copy, timeout=60)) as copy:
        if not copy.execute("SELECT 1 FROM sqlite_master WHERE name LIKE '%.added'").fetchall():
            return []
        return copy.execute(f'SELECT * FROM "{place.schema}.added" ORDER BY id').fetchall()


def test_check_tells_which_tables_other_patterns_load_and_leave_out(added: CopiedTable) -> None:
    said = added.call("check", str(added.config)).out
    assert f"sink a: loads {added.schema}.added, which the patterns match now" in said
    added.configure(tables=[f"{added.schema}.added"])
    said = added.call("check", str(added.config)).out
    assert f"sink a: keeps the rows of {added.schema}.item, which no pattern matches any more" in said
    assert not added_rows(added), "nothing is changed"


def test_a_new_pattern_that_matches_no_table_is_refused(added: CopiedTable) -> None:
    added.configure(tables=[f"{added.schema}.item", f"{added.schema}.addde"])
    refused = added.run().sentence
    assert refused.startswith(f"source.tables: no table matches '{added.schema}.addde'")
    assert findings(added) == [f"feed: {refused}"]


def test_check_refuses_a_log_that_was_reset(private_mariadb: MariaDb, tmp_path) -> None:
    private_mariadb.start().execute("CREATE DATABASE shop")
    place = CopiedTable(tmp_path, private_mariadb, "shop")
    place.continues()
    place.execute("RESET MASTER")
    refused = place.run().sentence
    assert "it was reset or restored from a backup" in refused
    assert findings(place) == [f"feed: {refused}"]


def test_check_refuses_a_table_that_another_setting_has_loaded(added: CopiedTable) -> None:
    added.execute(f"ALTER TABLE {added.schema}.item ADD COLUMN twice INT AS (id * 2) PERSISTENT")
    added.configure(tables=[f"{added.schema}.item"])
    added.continues()
    added.configure(tables=[f"{added.schema}.item"], source='generated_columns = "leave_out"')
    refused = added.run().sentence
    assert "source.generated_columns is 'leave_out'" in refused
    assert findings(added) == [f"source: {refused}"]


def test_the_tables_of_other_patterns_are_loaded(added: CopiedTable) -> None:
    added.execute(f"INSERT INTO {added.schema}.added VALUES (3)")
    with added.start() as running:
        running.wait_until(lambda: added_rows(added) == [(1,), (2,), (3,)])
        added.execute(f"INSERT INTO {added.schema}.added VALUES (4)")
        running.wait_until(lambda: added_rows(added) == [(1,), (2,), (3,), (4,)])
        assert running.stop(signal.SIGTERM).status == 0
    added.continues()


def test_all_tables_of_other_patterns_are_loaded_by_one_request(added: CopiedTable) -> None:
    with added.start_command("resume", str(added.config), "--resnapshot", "*") as running:
        running.wait_until(lambda: added_rows(added) == [(1,), (2,)])
        assert running.stop(signal.SIGTERM).status == 0
    added.continues()


def begins(place: CopiedTable) -> list[str]:
    """Return the lines of `check` about the sinks' beginning and the feed's."""
    said = place.call("check", str(place.config)).out.splitlines()
    parts = [line.split(maxsplit=1)[1] for line in said]
    return [
        part
        for part in parts
        if part.startswith(("sink", "feed")) and re.search(": (begins|goes on|reads|source.position)", part)
    ]


def ids(place: CopiedTable, copy: Path) -> list[int]:
    with closing(sqlite3.connect(copy, timeout=60)) as connection:
        return [one for (one,) in connection.execute(f'SELECT id FROM "{place.schema}.item" ORDER BY id')]


def make_tables(place: CopiedTable, *copies: Path) -> None:
    """Make the table that a feed without a snapshot doesn't make."""
    for copy in copies:
        with closing(sqlite3.connect(copy, timeout=60)) as connection:
            connection.execute(f'CREATE TABLE "{place.schema}.item" (id INTEGER PRIMARY KEY, name TEXT)')


EMPTY = "without a snapshot: the target must have the tables already, with their rows as of then"


def test_the_copy_begins_where_check_says(mariadb: MariaDb, database: str, tmp_path) -> None:
    place = CopiedTable(tmp_path, mariadb, database)
    other = tmp_path / "other.db"
    make_tables(place, place.copy, other)
    (log,) = place.execute("SHOW MASTER STATUS")
    place.insert(4)
    place.configure(source=f'position = "{log[0]}:{log[1]}"\nsnapshot = false')
    assert begins(place) == [f"sink a: begins at {log[0]}:{log[1]}, {EMPTY}"]
    assert place.run().status == 0
    assert place.copied_ids() == [4]
    (own,) = [part.removeprefix("sink a: ") for part in begins(place) if part.startswith("sink")]
    assert own.startswith("goes on from binlog.")
    assert "feed: source.position isn't used: a feed begins there only without a checkpoint" in begins(place)

    place.insert(5)
    place.configure(sinks=[place.sqlite_url, f"sqlite:///{other}"], source="snapshot = false")
    assert begins(place) == [
        f"sink a: {own}",
        f"sink b: begins where the feed goes on, {EMPTY}",
    ]
    assert place.run().status == 0
    assert (place.copied_ids(), ids(place, other)) == ([4, 5], [5])

    place.insert(6)
    place.configure(source="snapshot = false")
    assert place.run().status == 0
    place.configure(sinks=[place.sqlite_url, f"sqlite:///{other}"])
    feed, ahead, behind = begins(place)
    lowest = behind.removeprefix("sink b: goes on from ")
    assert feed == f"feed: reads the source from {lowest}, the lowest position of its sinks and tables"
    assert ahead.startswith("sink a: goes on from binlog.")
    assert lowest not in ahead
    assert place.run().status == 0
    assert (place.copied_ids(), ids(place, other)) == ([4, 5, 6], [5, 6])


def test_a_feed_without_a_snapshot_begins_at_the_present_end(
    mariadb: MariaDb, database: str, tmp_path
) -> None:
    place = CopiedTable(tmp_path, mariadb, database)
    place.configure(source="snapshot = false")
    assert begins(place) == [f"sink a: begins at the source's present end, {EMPTY}"]
    make_tables(place, place.copy)
    assert place.run().status == 0
    place.insert(4)
    assert place.run().status == 0
    assert place.copied_ids() == [4]


def test_check_says_how_a_feed_of_several_sources_begins(twins: Twins) -> None:
    options = feed_options(twins.found() | {"name": "twins", "data_dir": str(twins.directory / "state")})

    def said() -> list[str]:
        return [one.text for one in check_feed(options) if one.about == "sink copy"]

    assert said()[-1] == "begins with a snapshot"
    twins.run()
    assert re.fullmatch(r"goes on from north at binlog\.\S+ .*, south at binlog\.\S+ .*", said()[-1])
