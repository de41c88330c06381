from __future__ import annotations

import pymysql
import pytest

from tidemill.testing.mariadb import MariaDb


def query(server: MariaDb, sql: str, **options: object) -> list[tuple[object, ...]]:
    with server.connect(**options) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def test_the_server_writes_row_events_with_full_metadata(mariadb: MariaDb) -> None:
    names = "log_bin", "binlog_format", "binlog_row_metadata", "binlog_row_image"
    found = query(mariadb, f"SELECT {', '.join(f'@@global.{name}' for name in names)}")
    assert found == [(1, "ROW", "FULL", "FULL")]


def test_root_needs_its_password(mariadb: MariaDb) -> None:
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        mariadb.connect(password="")


def test_a_database_is_fresh(mariadb: MariaDb, database: str) -> None:
    assert query(mariadb, "SHOW TABLES", database=database) == []


def test_a_killed_server_comes_back_on_its_port_with_what_was_committed(private_mariadb: MariaDb) -> None:
    server = private_mariadb.start()
    port = server.port
    query(server, "CREATE DATABASE shop")
    server.kill()
    server.start()
    assert server.port == port
    assert ("shop",) in query(server, "SHOW DATABASES")
