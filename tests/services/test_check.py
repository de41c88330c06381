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
