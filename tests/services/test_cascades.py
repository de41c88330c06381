"""Foreign keys that change rows of followed tables, which MariaDB doesn't log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tidemill.config import Finding
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.requirements import survey
from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import PASSWORD
from tidemill.testing.mariadb_client import Client


def family(sql: Client, rules: str) -> None:
    sql(
        "CREATE TABLE par (id INT PRIMARY KEY)",
        "CREATE TABLE kid (id INT PRIMARY KEY, p INT, "
        f"CONSTRAINT of FOREIGN KEY (p) REFERENCES par (id) {rules})",
    )


def findings(sql: Client, *tables: str, **options: str) -> list[Finding]:
    given = replace(MysqlOptions(port=sql.server.port, password=PASSWORD), **options)  # type: ignore[arg-type]
    found = survey(given, lambda schema, table: schema == sql.database and table in tables)
    return [finding for finding in found.findings if finding.level != "ok"]


@pytest.mark.parametrize(
    "rules",
    [
        "ON DELETE CASCADE",
        "ON DELETE SET NULL",
        "ON UPDATE CASCADE",
        "ON UPDATE SET NULL",
        "ON DELETE CASCADE ON UPDATE CASCADE",
    ],
)
def test_an_unlogged_change_of_a_followed_table_is_refused(sql: Client, rules: str) -> None:
    family(sql, rules)
    (error,) = findings(sql, "par", "kid")
    assert error.level == "error"
    kid, par = f"{sql.database}.kid", f"{sql.database}.par"
    assert f"constraint of of {kid} changes its rows with those of {par} ({rules})" in error.text
    assert "source.cascades = 'ignore'" in error.text


@pytest.fixture
def reader(sql: Client) -> Iterator[str]:
    """A user who has the rights that a feed needs, and no others."""
    name = f"reader_{sql.database}"
    sql(
        f"CREATE USER {name} IDENTIFIED BY '{PASSWORD}'",
        f"GRANT SELECT ON {sql.database}.* TO {name}",
        f"GRANT REPLICATION SLAVE ON *.* TO {name}",
    )
    yield name
    sql(f"DROP USER {name}")


def test_a_user_who_may_only_read_sees_the_rules(sql: Client, reader: str) -> None:
    family(sql, "ON UPDATE RESTRICT ON DELETE SET NULL")
    sql(
        "CREATE TABLE `a ``b` (id INT PRIMARY KEY COMMENT 'ON DELETE CASCADE', p INT, "
        "CONSTRAINT `c ``d` FOREIGN KEY (p) REFERENCES par (id) ON UPDATE CASCADE, "
        "CONSTRAINT harmless FOREIGN KEY (p) REFERENCES par (id) ON DELETE RESTRICT)"
    )
    errors = [one.text for one in findings(sql, "par", "kid", "a `b", user=reader) if one.level == "error"]
    starts = [text.partition(", and the server")[0] for text in errors]
    assert starts == [
        f"constraint c `d of {sql.database}.a `b changes its rows with those of {sql.database}.par "
        "(ON UPDATE CASCADE)",
        f"constraint of of {sql.database}.kid changes its rows with those of {sql.database}.par "
        "(ON DELETE SET NULL)",
    ]


@pytest.mark.parametrize("rules", ["", "ON DELETE RESTRICT", "ON DELETE NO ACTION ON UPDATE RESTRICT"])
def test_a_foreign_key_that_changes_nothing_is_followed(sql: Client, rules: str) -> None:
    family(sql, rules)
    assert findings(sql, "par", "kid") == []


def test_only_the_changed_table_matters(sql: Client) -> None:
    family(sql, "ON DELETE CASCADE")
    assert findings(sql, "par") == []
    assert [error.level for error in findings(sql, "kid")] == ["error"]


def test_the_rules_of_every_table_of_a_chain_count(sql: Client) -> None:
    family(sql, "ON DELETE CASCADE")
    sql("CREATE TABLE last (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES kid (id) ON DELETE CASCADE)")
    sql("CREATE TABLE self (id INT PRIMARY KEY, up INT REFERENCES self (id) ON DELETE CASCADE)")
    found = [error.text.split()[3] for error in findings(sql, "last", "par", "self")]
    assert found == [f"{sql.database}.last", f"{sql.database}.self"]


def test_a_feed_ends_before_it_copies_anything(sql: Client, tmp_path: Path) -> None:
    place = CopiedTable(tmp_path, sql.server, sql.database)
    family(sql, "ON DELETE CASCADE")
    assert f"constraint of of {sql.database}.kid changes its rows" in place.run().sentence
    assert place.call("check", str(place.config)).status == 1
    with closing(sqlite3.connect(place.copy)) as copy:
        assert copy.execute("SELECT name FROM sqlite_schema WHERE name LIKE '%item'").fetchall() == []


def test_a_feed_may_ignore_them(sql: Client, tmp_path: Path) -> None:
    place = CopiedTable(tmp_path, sql.server, sql.database)
    family(sql, "ON DELETE CASCADE")
    place.configure(source="cascades = 'ignore'")
    place.continues()
    sql("INSERT INTO par VALUES (1)", "INSERT INTO kid VALUES (1, 1), (2, 1)", "DELETE FROM par")
    place.continues()
    (warning,) = findings(sql, "kid", cascades="ignore")
    assert (warning.level, warning.text.endswith("as source.cascades is 'ignore'")) == ("warning", True)


def test_a_feed_that_is_resumed_is_checked_again(sql: Client, tmp_path: Path) -> None:
    place = CopiedTable(tmp_path, sql.server, sql.database)
    family(sql, "")
    place.continues()
    sql("ALTER TABLE kid DROP FOREIGN KEY of")
    sql("ALTER TABLE kid ADD CONSTRAINT new FOREIGN KEY (p) REFERENCES par (id) ON DELETE CASCADE")
    assert f"constraint new of {sql.database}.kid changes its rows" in place.run().sentence


def test_one_that_came_and_went_in_the_log_is_refused(sql: Client, tmp_path: Path) -> None:
    place = CopiedTable(tmp_path, sql.server, sql.database)
    family(sql, "")
    sql("INSERT INTO par VALUES (1)", "INSERT INTO kid VALUES (1, 1)")
    place.continues()
    sql(
        "ALTER TABLE kid ADD CONSTRAINT new FOREIGN KEY (p) REFERENCES par (id) ON DELETE CASCADE",
        "ALTER TABLE kid DROP FOREIGN KEY of",
        "DELETE FROM par",
        "ALTER TABLE kid DROP FOREIGN KEY new",
    )
    assert "ON DELETE CASCADE" in place.run().sentence
