"""Findings about a MySQL, its tables as a snapshot sees them, and the snapshot's position."""

from __future__ import annotations

from contextlib import closing
from threading import Event, Thread
from typing import Any

import pytest

from tidemill.errors import SourceError
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.probe import probe
from tidemill.puller.mysql.requirements import Survey, survey
from tidemill.puller.mysql.snapshot import Snapshot
from tidemill.testing.mariadb_client import Client
from tidemill.testing.mysql import PASSWORD, MySql


def options(server: MySql, **given: Any) -> MysqlOptions:
    return MysqlOptions(**{"port": server.port, "password": PASSWORD, **given})


def look(sql: Client, **given: Any) -> Survey:
    return survey(options(sql.server, **given), lambda schema, _: schema == sql.database)


def texts(found: Survey, level: str) -> list[str]:
    return [finding.sentence for finding in found.findings if finding.level == level]


def test_a_server_that_has_all_shows_the_tables_that_match(mysql_sql: Client) -> None:
    mysql_sql("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (a INT NOT NULL UNIQUE)")
    found = look(mysql_sql)
    assert (texts(found, "error"), texts(found, "warning")) == ([], [])
    assert [table.table.name for table in found.tables] == ["t", "u"]
    assert found.server.startswith("9.7.")


def test_its_identity_is_its_uuid(mysql_sql: Client) -> None:
    ((uuid,),) = mysql_sql("SELECT @@server_uuid")
    assert probe(options(mysql_sql.server)).source == f"mysql server {uuid}"


def test_columns_and_their_defaults_are_read_as_sql(mysql_sql: Client) -> None:
    mysql_sql(
        """CREATE TABLE t (id INT UNSIGNED NOT NULL PRIMARY KEY,
          name VARCHAR(20) CHARACTER SET utf8mb3 DEFAULT 'it''s', path VARCHAR(9) DEFAULT 'a\\\\b',
          word CHAR(4) DEFAULT 'NULL', doc JSON, year YEAR DEFAULT 2001,
          at DATETIME(3) DEFAULT NOW(3) ON UPDATE NOW(3), bits BIT(3) DEFAULT b'101',
          price DECIMAL(5,2) DEFAULT 1.5, raw BINARY(2) DEFAULT 0x00ff, some VARBINARY(4) DEFAULT 0x6100,
          id2 VARCHAR(36) DEFAULT (UUID()), both_ VARCHAR(9) DEFAULT (concat('a''b', 'c')),
          day DATE DEFAULT '2020-01-02', none INT DEFAULT NULL)"""
    )
    (table,) = look(mysql_sql).tables
    assert {column.name: (column.kind, column.default) for column in table.table.columns} == {
        "id": ("int", None),
        "name": ("varchar", "'it''s'"),
        "path": ("varchar", r"'a\\b'"),
        "word": ("char", "'NULL'"),
        "doc": ("json", None),
        "year": ("year", "2001"),
        "at": ("datetime", "CURRENT_TIMESTAMP(3)"),
        "bits": ("bit", "b'101'"),
        "price": ("decimal", "1.50"),
        "raw": ("binary", "x'00FF'"),
        "some": ("varbinary", "x'6100'"),
        "id2": ("varchar", "(uuid())"),
        "both_": ("varchar", r"(concat(_utf8mb4'a\'b',_utf8mb4'c'))"),
        "day": ("date", "'2020-01-02'"),
        "none": ("int", None),
    }
    (name,) = [column for column in table.table.columns if column.name == "name"]
    assert (name.charset, name.collation) == ("utf8mb3", "utf8mb3_general_ci")
    (at,) = [column for column in table.table.columns if column.name == "at"]
    assert at.on_update == "CURRENT_TIMESTAMP(3)"


def test_a_key_that_the_server_generates_is_a_column_even_if_hidden(private_mysql: MySql) -> None:
    private_mysql.options = (
        "--sql-generate-invisible-primary-key=ON",
        "--show-gipk-in-create-table-and-information-schema=OFF",
    )
    private_mysql.start().execute("CREATE DATABASE shop", "CREATE TABLE shop.t (a INT)")
    (table,) = survey(options(private_mysql), lambda schema, _: schema == "shop").tables
    assert [column.name for column in table.table.columns] == ["my_row_id", "a"]
    assert table.table.key == (0,)


def test_missing_rights_are_named_with_the_grant(mysql_sql: Client) -> None:
    user = f"reader_{mysql_sql.database}"
    mysql_sql(
        "CREATE TABLE t (id INT)",
        f"CREATE USER {user}@127.0.0.1 IDENTIFIED BY 'secret'",
        f"GRANT SELECT ON {mysql_sql.database}.* TO {user}@127.0.0.1",
    )
    try:
        found = look(mysql_sql, user=user, password="secret")
        assert [text.rpartition(": ")[2] for text in texts(found, "error")] == [
            f"GRANT REPLICATION SLAVE ON *.* TO '{user}'@'127.0.0.1'",
            f"GRANT REPLICATION CLIENT ON *.* TO '{user}'@'127.0.0.1'",
            f"GRANT RELOAD ON *.* TO '{user}'@'127.0.0.1'",
        ]
        assert "SESSION_VARIABLES_ADMIN" in texts(found, "warning")[0]
        mysql_sql(f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}@127.0.0.1")
        assert texts(look(mysql_sql, user=user, password="secret", snapshot=False), "error") == []
        mysql_sql(f"GRANT FLUSH_TABLES ON *.* TO {user}@127.0.0.1")
        assert texts(look(mysql_sql, user=user, password="secret"), "error") == []
        Snapshot(options(mysql_sql.server, user=user, password="secret"), lambda *_: True).close()
    finally:
        mysql_sql(f"DROP USER {user}@127.0.0.1")


def test_settings_that_lose_values_are_named(private_mysql: MySql) -> None:
    private_mysql.options = ("--binlog-row-value-options=PARTIAL_JSON", "--binlog-row-metadata=MINIMAL")
    private_mysql.start().execute("CREATE DATABASE shop", "CREATE TABLE shop.t (a INT)")
    found = survey(options(private_mysql), lambda schema, _: schema == "shop")
    assert [text.rpartition(": ")[2] for text in texts(found, "error")] == [
        "SET GLOBAL binlog_row_value_options = ''",
    ]


def test_a_server_without_binlog(private_mysql: MySql) -> None:
    private_mysql.options = ("--skip-log-bin",)
    private_mysql.start()
    with pytest.raises(SourceError, match="writes no binlog: start it with log_bin"):
        probe(options(private_mysql))


def test_a_snapshot_has_exactly_the_rows_before_its_position(mysql_sql: Client) -> None:
    """While others write: the rows of a snapshot are those of the transactions before its position."""
    mysql_sql("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, at INT)")
    stop, writing = Event(), Event()

    def write() -> None:
        with (
            mysql_sql.server.connect(database=mysql_sql.database) as connection,
            connection.cursor() as cursor,
        ):
            while not stop.is_set():
                cursor.execute("INSERT INTO t (at) VALUES (1)")
                writing.set()

    threads = [Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        writing.wait()
        seen = []
        for _ in range(10):
            snapshot = Snapshot(options(mysql_sql.server), lambda schema, _: schema == mysql_sql.database)
            with closing(snapshot), snapshot._session.cursor() as cursor:
                cursor.execute(f"SELECT COUNT(*) FROM {mysql_sql.database}.t")
                seen.append((cursor.fetchone()[0], snapshot.position))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for rows, position in seen:
        events = mysql_sql(f"SHOW BINLOG EVENTS IN '{position.file}'")
        table_maps = [
            event
            for event in events
            if event[2] == "Table_map"
            and event[4] <= position.offset
            and f"({mysql_sql.database}.t)" in event[5]
        ]
        assert len(table_maps) == rows
