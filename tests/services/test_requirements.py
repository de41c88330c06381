"""Findings about a server by `tidemill check`, and by a puller at its start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidemill.errors import Retryable, SourceError
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.probe import probe
from tidemill.puller.mysql.requirements import Survey, survey
from tidemill.testing.mariadb import PASSWORD, MariaDb

from .pulling import VERSIONED_BY_TRANSACTIONS, binlog_end


def look(server: MariaDb, database: str, **options: Any) -> Survey:
    given = MysqlOptions(port=server.port, password=PASSWORD)
    return survey(replace(given, **options), lambda schema, _: schema == database)


def errors(found: Survey) -> list[str]:
    return [finding.sentence for finding in found.findings if finding.level == "error"]


def warnings(found: Survey) -> list[str]:
    return [finding.text for finding in found.findings if finding.level == "warning"]


def test_a_server_that_has_all_shows_the_tables_that_match(mariadb: MariaDb, database: str) -> None:
    mariadb.execute(
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY)",
        f"CREATE TABLE {database}.u (a INT NOT NULL UNIQUE)",
    )
    end = binlog_end(mariadb)
    found = look(mariadb, database)
    assert (errors(found), warnings(found)) == ([], [])
    assert [table.table.full_name for table in found.tables] == [f"{database}.t", f"{database}.u"]
    assert {table.engine for table in found.tables} == {"InnoDB"}
    assert "MariaDB" in found.server
    found.raise_errors()
    assert binlog_end(mariadb) == end


def test_tables_without_transactions_are_warned_of(mariadb: MariaDb, database: str) -> None:
    mariadb.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY) ENGINE = MyISAM")
    (warning,) = warnings(look(mariadb, database))
    assert warning.startswith(f"{database}.t is a table of MyISAM, which has no transactions")


def test_tables_without_a_key_are_warned_of(mariadb: MariaDb, database: str) -> None:
    mariadb.execute(
        f"CREATE TABLE {database}.a (id INT)",
        f"CREATE TABLE {database}.b (id INT UNIQUE)",
        f"CREATE TABLE {database}.c (id INT NOT NULL UNIQUE)",
        f"CREATE TABLE {database}.d (id INT PRIMARY KEY)",
    )
    found = look(mariadb, database)
    (warning,) = warnings(found)
    named, _, cost = warning.partition(". ")
    assert named.endswith(f": {database}.a, {database}.b")
    assert cost.startswith("A database searches the whole table for rows to update or delete")
    assert errors(found) == []


def test_a_pattern_that_matches_nothing_shows_what_there_is(mariadb: MariaDb, database: str) -> None:
    mariadb.execute(f"CREATE TABLE {database}.t (id INT)")
    (error,) = errors(look(mariadb, "nowhere"))
    assert error.startswith("no table matches")
    assert f"{database}.t" in error


def test_tables_that_are_not_supported_are_each_named(mariadb: MariaDb, database: str) -> None:
    mariadb.execute(
        f"CREATE TABLE {database}.a {VERSIONED_BY_TRANSACTIONS}",
        f"CREATE TABLE {database}.b (id INT, twice INT AS (id * 2) STORED, place POINT)",
        f"CREATE TABLE {database}.c {VERSIONED_BY_TRANSACTIONS}",
    )
    found = look(mariadb, database)
    assert [table.table.name for table in found.tables] == ["b"]
    a, c = errors(found)
    assert f"{database}.a is system-versioned by transactions" in a
    assert f"{database}.c is system-versioned by transactions" in c
    with pytest.raises(SourceError, match=r"a is system-versioned.*; .*c is system-versioned"):
        found.raise_errors()


def test_a_wrong_password(mariadb: MariaDb, database: str) -> None:
    with pytest.raises(SourceError, match=r"Access denied for user 'root'.*check user and password$"):
        look(mariadb, database, password="wrong")


def test_a_server_that_does_not_answer(private_mariadb: MariaDb) -> None:
    private_mariadb.start().kill()
    with pytest.raises(Retryable, match="Can't connect"):
        look(private_mariadb, "shop")
    with pytest.raises(Retryable, match="Can't connect"):
        probe(MysqlOptions(port=private_mariadb.port))


def test_missing_rights_are_named_with_the_grant(mariadb: MariaDb, database: str) -> None:
    user = f"reader_{database}"
    mariadb.execute(
        f"CREATE TABLE {database}.t (id INT)",
        f"CREATE USER {user}@localhost IDENTIFIED BY 'secret'",
        f"CREATE USER {user}@127.0.0.1 IDENTIFIED BY 'secret'",
        f"GRANT INSERT ON {database}.* TO {user}@127.0.0.1",
    )
    try:
        found = look(mariadb, database, user=user, password="secret")
        assert any(
            text.endswith(f"may not read the binlog: GRANT REPLICATION SLAVE ON *.* TO '{user}'@'127.0.0.1'")
            for text in errors(found)
        )
        assert any(f"{database}.t can't be read" in text for text in errors(found))
        assert "BINLOG ADMIN" in warnings(found)[0]
        mariadb.execute(
            f"GRANT SELECT ON {database}.* TO {user}@127.0.0.1",
            f"GRANT REPLICATION SLAVE ON *.* TO {user}@127.0.0.1",
        )
        assert errors(look(mariadb, database, user=user, password="secret")) == []
    finally:
        mariadb.execute(f"DROP USER {user}@localhost, {user}@127.0.0.1")


def test_binlog_settings(private_mariadb: MariaDb) -> None:
    server = private_mariadb.start()
    server.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT)",
        "SET GLOBAL binlog_format = MIXED",
        "SET GLOBAL binlog_row_image = MINIMAL",
    )
    lasting = "set it in the server's configuration too, and reconnect the open sessions"
    assert errors(look(server, "shop")) == [
        f"binlog_format is MIXED, not ROW: {lasting}: SET GLOBAL binlog_format = ROW",
        f"binlog_row_image is MINIMAL, not FULL: {lasting}: SET GLOBAL binlog_row_image = FULL",
    ]


def test_a_server_without_prepared_statements(private_mariadb: MariaDb) -> None:
    server = private_mariadb.start()
    server.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        "SET GLOBAL max_prepared_stmt_count = 0",
    )
    survey = look(server, "shop")
    assert errors(survey) == []
    (warning,) = [finding.text for finding in survey.findings if "prepared" in finding.text]
    assert warning.startswith("max_prepared_stmt_count is 0, and tables are loaded by prepared statements")


def test_a_server_without_binlog(private_mariadb: MariaDb) -> None:
    private_mariadb.options = ("--skip-log-bin",)
    server = private_mariadb.start()
    server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT)")
    (error,) = errors(look(server, "shop"))
    assert error == (
        "the server writes no binlog: set log_bin and binlog_format = ROW below [mysqld] in its "
        "configuration, and restart it"
    )
