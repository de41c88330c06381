"""`check` refuses what `run` refuses, in the same words, and its advice about other patterns leads on."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing

import pytest

from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import MariaDb


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


def test_check_refuses_other_patterns_as_run_does(added: CopiedTable) -> None:
    refused = added.run().sentence
    path = added.directory / "state" / "copy.tables"
    assert refused == (
        f'source.tables: this feed followed ["{added.schema}.item"] so far, not ["{added.schema}.item", '
        f'"{added.schema}.added"]: rows of newly matched tables are missing in its targets. To add tables, '
        f"remove {path} and load each of them (tidemill resume FEED --resnapshot TABLE); the feed stops at a "
        "change of one that isn't loaded. Or load all tables again (--resnapshot '*'), or give a feed with "
        'other patterns a new name and target. Patterns that leave tables out, as "!shop.orders", may be '
        "added at the end"
    )
    assert findings(added) == [f"feed: {refused}"]


def test_check_refuses_a_log_that_was_reset(private_mariadb: MariaDb, tmp_path) -> None:
    with private_mariadb.start().connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
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


def test_the_tables_of_other_patterns_are_loaded_by_request(added: CopiedTable) -> None:
    (added.directory / "state" / "copy.tables").unlink()
    with added.start_command("resume", str(added.config), "--resnapshot", f"{added.schema}.added") as running:
        running.wait_until(lambda: added_rows(added) == [(1,), (2,)])
        added.execute(f"INSERT INTO {added.schema}.added VALUES (3)")
        running.wait_until(lambda: added_rows(added) == [(1,), (2,), (3,)])
        assert running.stop(signal.SIGTERM).status == 0
    added.continues()


def test_a_table_of_other_patterns_that_isn_t_loaded_stops_the_feed(added: CopiedTable) -> None:
    (added.directory / "state" / "copy.tables").unlink()
    added.execute(f"INSERT INTO {added.schema}.added VALUES (3)")
    assert f"{added.schema}.added" in added.run().sentence


def test_all_tables_of_other_patterns_are_loaded_by_one_request(added: CopiedTable) -> None:
    with added.start_command("resume", str(added.config), "--resnapshot", "*") as running:
        running.wait_until(lambda: added_rows(added) == [(1,), (2,)])
        assert running.stop(signal.SIGTERM).status == 0
    added.continues()
