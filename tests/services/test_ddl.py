"""Statements of a server's own kinds, logged by a real one and followed into both targets."""

from __future__ import annotations

from pathlib import Path

from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import MariaDb


def in_session(place: CopiedTable, *statements: str) -> None:
    place.execute(f"USE {place.schema}", *statements)


def test_statements_under_settings_of_their_own(place: CopiedTable) -> None:
    in_session(
        place,
        "SET STATEMENT lock_wait_timeout=60, time_zone='+05:30', timestamp=1700000000 FOR "
        "ALTER TABLE item ADD seen DATETIME DEFAULT NOW()",
        "SET STATEMENT lock_wait_timeout=60 FOR INSERT INTO item (id, name) VALUES (4, 'four')",
        "SET STATEMENT max_statement_time=5 FOR UPDATE item SET name = 'x', seen = '2020-01-01' WHERE id > 2",
        "SET STATEMENT lock_wait_timeout=60 FOR DELETE FROM item WHERE id = 1",
    )
    place.run()
    copied = [tuple(str(value) for value in row) for row in place.copied()]
    assert copied == [tuple(str(value) for value in row) for row in place.present()]
    assert len(copied) == 3


def test_what_did_nothing_is_passed_over(place: CopiedTable) -> None:
    in_session(
        place,
        "DROP TABLE IF EXISTS nosuch",
        "RENAME TABLE IF EXISTS nosuch TO nosuch2",
        "ALTER TABLE IF EXISTS nosuch ADD x INT",
        "ALTER TABLE item ADD COLUMN IF NOT EXISTS name INT",
        "ALTER TABLE item DROP COLUMN IF EXISTS nosuch",
        "ALTER TABLE item DROP COLUMN IF EXISTS nosuch, ADD COLUMN IF NOT EXISTS NAME INT, "
        "ADD n INT DEFAULT 7",
        "CREATE TABLE IF NOT EXISTS item (id INT)",
        "INSERT INTO item VALUES (4, 'four', 8)",
    )
    place.continues()


def test_a_column_that_comes_and_goes(place: CopiedTable) -> None:
    in_session(place, "ALTER TABLE item ADD x INT")
    place.continues()
    in_session(place, "ALTER TABLE item DROP x", "ALTER TABLE item ADD COLUMN IF NOT EXISTS x INT DEFAULT 5")
    place.continues()


def test_a_carriage_return_in_a_column_s_name(place: CopiedTable) -> None:
    in_session(
        place,
        "ALTER TABLE item ADD `a\r\nb` INT DEFAULT 5",
        "UPDATE item SET `a\r\nb` = 6 WHERE id = 2",
        "INSERT INTO item VALUES (4, 'four', 7)",
        "DELETE FROM item WHERE id = 1",
    )
    place.continues()


def test_two_tables_whose_names_look_the_same_are_refused_at_the_start(
    mariadb: MariaDb, database: str, tmp_path: Path
) -> None:
    place = CopiedTable(tmp_path, mariadb, database)
    place.execute(
        f"CREATE DATABASE `{database}.a`",
        f"CREATE TABLE `{database}.a`.b (id INT PRIMARY KEY)",
        f"CREATE TABLE `{database}`.`a.b` (id INT PRIMARY KEY)",
    )
    try:
        place.configure(tables=[f"{database}*.*"])
        for done in (place.run(), place.call("check", str(place.config))):
            assert done.status > 0
            said = " ".join((done.out + done.err).replace("│", " ").split())
            assert f"`{database}`.`a.b` and `{database}.a`.`b` can't both be followed" in said, said
        place.execute(f"DROP TABLE `{database}`.`a.b`")
        place.continues()
    finally:
        place.execute(f"DROP DATABASE `{database}.a`")
