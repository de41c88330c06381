"""The life of a table in a running feed: paused, resumed, parked by an error, listed by the command line."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pymysql
import pytest

import tidemill
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.engine.tables import TableStatus
from tidemill.errors import ConfigError
from tidemill.events import Row
from tidemill.testing.feeds import CopiedTable, Running
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.progress import eventually, feed_ended

PARK = 'on_table_error = "park"\n'


def tables(place: CopiedTable) -> dict[str, TableStatus]:
    """Return the list that the command line prints, by the tables' names without their schema."""
    lines = place.call("tables", str(place.config), "--json").out.splitlines()
    return {one["name"].rpartition(".")[2]: TableStatus(**one) for one in map(json.loads, lines)}


def in_state(running: Running, place: CopiedTable, **states: str) -> None:
    """Wait until the list of tables has these states."""
    running.wait_until(
        lambda: all((one := tables(place).get(name)) and one.state == state for name, state in states.items())
    )


def copied(place: CopiedTable) -> list[Row] | None:
    """Return the rows of the copy; None while the table is replaced."""
    with suppress(pymysql.err.ProgrammingError, sqlite3.OperationalError):
        return place.copied()
    return None


def kept(place: CopiedTable) -> list[int]:
    """Return the keys in the copy of the other table."""
    if place.copy_server is not None:
        rows = place.copy_server.execute("SELECT id FROM kept ORDER BY id", database=place.copy_schema)
        return [row[0] for row in rows]
    with closing(sqlite3.connect(place.copy, timeout=60)) as copy:
        return [row[0] for row in copy.execute(f'SELECT id FROM "{place.schema}.kept" ORDER BY id')]


def test_a_table_is_paused_while_another_goes_on_and_resumed(place: CopiedTable) -> None:
    table = f"{place.schema}.item"
    with place.start() as running:
        running.until(lambda status: status.table_states == {"following": 2})
        done = place.call("pause", str(place.config), table)
        assert (done.status, done.out) == (0, f"{table}: paused now\n")
        in_state(running, place, item="paused", kept="following")
        place.execute(
            f"INSERT INTO {table} VALUES (4, 'new')",
            f"ALTER TABLE {table} ADD COLUMN more INT",
            f"INSERT INTO {place.schema}.kept VALUES (1)",
        )
        running.wait_until(lambda: kept(place) == [1])
        assert place.copied_ids() == [1, 2, 3]
        status = running.until(lambda status: status.tables)
        assert [(one.name, one.state) for one in status.tables] == [(table, "paused")]
        assert status.table_states == {"paused": 1, "following": 1}
        done = place.call("resume", str(place.config), "--table", table)
        assert (done.status, done.out) == (0, f"{table}: loaded again now\n")
        running.wait_until(lambda: copied(place) == place.present())
        place.execute(f"INSERT INTO {table} VALUES (5, 'later', 7)")
        running.wait_until(lambda: copied(place) == place.present())
        in_state(running, place, item="following")
        assert running.stop(signal.SIGTERM).status == 0


def test_a_paused_table_stays_so_through_a_kill_and_keeps_no_feed_from_its_end(place: CopiedTable) -> None:
    table = f"{place.schema}.item"
    place.call("pause", str(place.config), table)
    with place.start() as running:
        in_state(running, place, item="paused")
        running.process.kill()
        running.exit_status()
    place.insert(4)
    place.execute(f"INSERT INTO {place.schema}.kept VALUES (1)")
    assert place.run().status == 0
    assert (kept(place), place.copied_ids()) == ([1], [1, 2, 3])
    item = tables(place)["item"]
    assert item.state == "paused"
    assert item.lag_seconds is not None
    done = place.call("resume", str(place.config), "--table", table)
    assert done.out == f"{table}: loaded again when the feed runs; it is finished\n"
    place.continues()


def test_what_can_t_be_asked_of_a_table_is_said(place: CopiedTable) -> None:
    table = f"{place.schema}.item"

    def refused(*command: str) -> str:
        return place.call(command[0], str(place.config), *command[1:]).sentence

    assert place.run().status == 0
    assert refused("pause", "other.item").startswith("other.item: the feed doesn't follow this table: its")
    assert refused("pause", f"{place.schema}.none") == (
        f"{place.schema}.none: the feed has no such table: tidemill tables FEED.TOML lists them"
    )
    assert refused("resume", "--table", table) == (
        f"{table}: it is following; only a paused or failed table can be resumed"
    )
    said = json.loads(place.call("pause", str(place.config), table, "--json").out)
    assert said == {"feed": "copy", "state": "finished", "table": table, "requested": "paused"}
    assert place.run().status == 0
    assert refused("pause", table) == (
        f"{table}: it is paused already; only a table that is followed can be paused"
    )
    assert refused("snapshot", table) == f"{table}: it is paused: resume it, and it is loaded again"


def test_a_program_pauses_a_table_of_its_feed(place: CopiedTable) -> None:
    table = f"{place.schema}.item"
    options = feed_options(
        {
            "name": "copy",
            "data_dir": str(place.directory / "state"),
            "source": {"url": place.source_url, "tables": [f"{place.schema}.*"]},
            "sink": [{"url": f"sqlite:///{place.directory / 'other.db'}"}],
        }
    )
    feed = Feed(options, open_sinks(options))
    feed.start()
    try:
        eventually(lambda: feed.status().table_states == {"following": 2})
        feed.pause_table(table)
        eventually(lambda: feed.status().table_states == {"paused": 1, "following": 1})
        place.execute(f"INSERT INTO {place.schema}.kept VALUES (1), (2)", f"DELETE FROM {place.schema}.kept")
        eventually(lambda: feed.tables()[1].deletes == 2)
        item, other = feed.tables()
        assert (item.name, item.state, other.inserts, other.deletes) == (table, "paused", 2, 2)
        with pytest.raises(ConfigError, match="it is paused already"):
            feed.pause_table(table)
        feed.resume_table(table)
        eventually(lambda: feed.status().table_states == {"following": 2})
        assert feed.tables()[0].rows_loaded >= 3
        feed.reload_table(table)
        eventually(lambda: feed.tables()[0].rows_loaded >= 6)
    finally:
        feed.stop()
        feed_ended(feed)
    assert feed.error is None


def test_a_program_pauses_a_table_that_it_reads(place: CopiedTable) -> None:
    item, other = f"{place.schema}.item", f"{place.schema}.kept"
    seen: list[tuple[str, object]] = []

    def receive(txn: tidemill.Transaction) -> None:
        seen.extend((row.table.full_name, row.after[0]) for row in txn.rows if row.after is not None)

    with tidemill.follow(
        receive, place.source_url, [f"{place.schema}.*"], data_dir=place.directory / "program", block=False
    ) as handle:
        eventually(lambda: handle.status().table_states == {"following": 2})
        handle.pause_table(item)
        eventually(lambda: [one.state for one in handle.tables()] == ["paused", "following"])
        place.execute(f"INSERT INTO {item} VALUES (7, 'new')", f"INSERT INTO {other} VALUES (8)")
        eventually(lambda: (other, 8) in seen)
        assert (item, 7) not in seen
        handle.resume_table(item)
        eventually(lambda: (item, 7) in seen)
        eventually(lambda: handle.status().table_states == {"following": 2})
        before = len(seen)
        handle.reload_table(item)
        eventually(lambda: (item, 7) in seen[before:])


@pytest.fixture
def parking(place: CopiedTable) -> CopiedTable:
    """A feed that parks tables after errors."""
    place.config.write_text(PARK + place.config.read_text())
    return place


def lose_copy(place: CopiedTable) -> None:
    """Drop the copy of `item` in the target."""
    if place.copy_server is not None:
        place.execute(f"DROP TABLE {place.copy_schema}.item")
    else:
        with closing(sqlite3.connect(place.copy)) as copy:
            copy.execute(f'DROP TABLE "{place.schema}.item"')


def rename_copy(place: CopiedTable, name: str, other: str) -> None:
    """Give a copy in the target another name."""
    if place.copy_server is not None:
        place.execute(f"RENAME TABLE {place.copy_schema}.{name} TO {place.copy_schema}.{other}")
    else:
        with closing(sqlite3.connect(place.copy)) as copy:
            copy.execute(f'ALTER TABLE "{place.schema}.{name}" RENAME TO "{place.schema}.{other}"')


def test_a_transaction_over_a_failed_table_and_a_healthy_one_applies_the_healthy_rows(
    parking: CopiedTable,
) -> None:
    schema, table = parking.schema, f"{parking.schema}.item"
    lose_copy(parking)
    parking.server.execute(
        "BEGIN",
        f"INSERT INTO {schema}.kept VALUES (1)",
        f"INSERT INTO {table} VALUES (4, 'x')",
        f"INSERT INTO {schema}.kept VALUES (2)",
        "COMMIT",
        f"INSERT INTO {schema}.kept VALUES (3)",
    )
    assert parking.run().status == 0
    assert kept(parking) == [1, 2, 3]
    item = tables(parking)["item"]
    assert item.state == "failed"
    assert "item" in item.error
    assert parking.call("status", str(parking.config)).out.count("failed") == 2, "the table, and its count"
    parking.call("resume", str(parking.config), "--table", table)
    parking.continues()


def test_a_row_that_the_target_refuses_parks_its_table_only(parking: CopiedTable) -> None:
    if parking.copy_server is None:
        with closing(sqlite3.connect(parking.copy)) as copy:
            copy.execute(
                f'CREATE TRIGGER refuses BEFORE INSERT ON "{parking.schema}.item" '
                "BEGIN SELECT RAISE(ABORT, 'not here'); END"
            )
    else:
        schema = parking.copy_schema
        parking.execute(
            f"CREATE TRIGGER {schema}.refuses BEFORE INSERT ON {schema}.item FOR EACH ROW "
            "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not here'"
        )
    parking.insert(4)
    parking.execute(f"INSERT INTO {parking.schema}.kept VALUES (1)")
    assert parking.run().status == 0
    assert kept(parking) == [1]
    item = tables(parking)["item"]
    assert (item.state, "not here" in item.error) == ("failed", True)
    lose_copy(parking)
    parking.call("resume", str(parking.config), "--table", f"{parking.schema}.item")
    parking.continues()


def test_without_the_option_the_feed_stops_and_skips_nothing(place: CopiedTable) -> None:
    rename_copy(place, "item", "away")
    place.insert(4)
    place.execute(f"INSERT INTO {place.schema}.kept VALUES (1)")
    assert "item" in place.run().sentence
    rename_copy(place, "away", "item")
    place.continues()
    assert kept(place) == [1]


def test_a_statement_that_a_rule_stops_at_parks_its_table_and_changes_the_others(
    parking: CopiedTable,
) -> None:
    schema = parking.schema
    rule = f'\n[[on_ddl]]\ntables = ["{schema}.item"]\nkinds = ["drop table"]\naction = "stop"\n'
    parking.config.write_text(parking.config.read_text() + rule)
    parking.execute(
        f"DROP TABLE {schema}.kept, {schema}.item", f"CREATE TABLE {schema}.third (id INT PRIMARY KEY)"
    )
    assert parking.run().status == 0
    listed = tables(parking)
    assert listed["item"].state == "failed"
    assert "stopped before a statement of kind 'drop table'" in listed["item"].error
    assert "kept" not in listed
    assert listed["third"].state == "following"
    assert parking.copied_ids() == [1, 2, 3], "it stays until the table is resumed"
    parking.call("resume", str(parking.config), "--table", f"{schema}.item")
    parking.config.write_text(parking.config.read_text().replace(rule, ""))
    assert parking.run().status == 0
    assert "item" not in tables(parking)


def test_an_error_that_is_of_no_table_stops_the_feed(parking: CopiedTable) -> None:
    moved = "UPDATE {} SET ts = ts + 1"
    with parking.start() as running:
        running.until(lambda status: status.table_states == {"following": 2})
        if parking.copy_server is not None:
            parking.execute(moved.format(f"{parking.copy_schema}.tidemill_checkpoint"))
        else:
            with closing(sqlite3.connect(parking.copy, timeout=60)) as copy:
                copy.execute(moved.format("tidemill_checkpoint"))
                copy.commit()
        parking.insert(4)
        assert running.exit_status() == 1
    assert "was moved by somebody else" in running.output()
    assert all(one.state == "following" for one in tables(parking).values())


@pytest.fixture
def spread(mariadb: MariaDb, database: str, postgresql: PostgreSql, tmp_path: Path) -> Iterator[CopiedTable]:
    """A feed into SQLite, PostgreSQL and a file."""
    place = CopiedTable(tmp_path, mariadb, database)
    place.execute(f"CREATE TABLE {database}.kept (id INT PRIMARY KEY)")
    place.configure(sinks=[place.sqlite_url, f"{postgresql.url()}", f"file://{tmp_path}/changes.ndjson"])
    text = place.config.read_text().replace(
        f'url = "{postgresql.url()}"', f'url = "{postgresql.url()}"\nschema = "{database}"'
    )
    place.config.write_text(PARK + text)
    place.continues()
    yield place
    with postgresql.connect() as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {database} CASCADE")


def test_a_table_that_fails_in_one_sink_goes_on_in_the_others(
    spread: CopiedTable, postgresql: PostgreSql
) -> None:
    schema = spread.schema
    with postgresql.connect() as connection:
        connection.execute(f"DROP TABLE {schema}.item")
    spread.insert(4)
    spread.execute(f"INSERT INTO {schema}.kept VALUES (1)")
    spread.continues()
    item = tables(spread)["item"]
    assert (item.state, "isn't there" in item.error) == ("failed", True), item
    spread.call("resume", str(spread.config), "--table", f"{schema}.item")
    spread.insert(5)
    spread.continues()
    with postgresql.connect() as connection:
        assert [row[0] for row in connection.execute(f"SELECT id FROM {schema}.item ORDER BY id")] == [
            1, 2, 3, 4, 5
        ]  # fmt: skip
        assert connection.execute(f"SELECT id FROM {schema}.kept").fetchall() == [(1,)]
    changes = (spread.directory / "changes.ndjson").read_text().splitlines()
    inserted = [json.loads(line) for line in changes if '"insert"' in line]
    ids = sorted(line["after"]["id"] for line in inserted if line["table"].endswith("item"))
    assert ids == [1, 2, 3, 4, 5], "the file has each once: it went on"


def test_a_paused_table_is_left_out_of_a_file_and_loaded_into_it_again(spread: CopiedTable) -> None:
    table = f"{spread.schema}.item"
    spread.call("pause", str(spread.config), table)
    spread.insert(4)
    assert spread.run().status == 0
    file = spread.directory / "changes.ndjson"
    assert "item 4" not in file.read_text()
    assert "item 4" not in str(spread.copied())
    spread.call("resume", str(spread.config), "--table", table)
    spread.continues()
    assert file.read_text().count("item 4") == 1
