"""A feed from MySQL 9.7 to Python, SQLite, MySQL and MariaDB."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tidemill
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.errors import SinkError
from tidemill.puller.puller import Connected
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.mysql import MySql
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.progress import feed_ended

from .pulling import Copy, Pulling, mysql_end, rows_of, source_rows

TABLES = {
    "plain": """id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50) DEFAULT 'it''s',
      price DECIMAL(10,3), at DATETIME(3), seen TIMESTAMP(6) NULL, day DATE, span TIME(2), raw VARBINARY(20),
      fixed BINARY(4), bits BIT(9), size ENUM('s','m'), tags SET('a','b','c'), f FLOAT, d DOUBLE, y YEAR,
      big BIGINT UNSIGNED, note TEXT, b BLOB""",
    "named": "name VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY, n INT",
    "loose": "n INT, word VARCHAR(9)",
}
PLAIN = """(NULL, 'ä\\\\n', -1.5, '2024-02-29 12:00:00.123', '2024-02-29 12:00:00.123456', '2024-02-29',
  '-12:30:00.25', x'00ff', x'61', b'100000001', 'm', 'a,c', 1.1, 2.2, 2024, 18446744073709551615,
  REPEAT('x', 300), x'00')"""
NULLS = f"({', '.join(['NULL'] * 18)})"


def begin(sql: Client) -> None:
    for name, columns in TABLES.items():
        sql(f"CREATE TABLE {name} ({columns})")
    sql(f"INSERT INTO plain VALUES {PLAIN}, {NULLS}")
    sql(
        "INSERT INTO named VALUES ('é', 1), ('b', 2)",
        "INSERT INTO loose VALUES (1, 'a'), (1, 'a'), (2, NULL)",
    )


def change(sql: Client) -> None:
    sql("BEGIN", f"INSERT INTO plain VALUES {PLAIN}", "UPDATE plain SET price = 7, note = NULL WHERE id = 1")
    sql("DELETE FROM plain WHERE id = 2", "UPDATE named SET n = n + 1", "DELETE FROM loose LIMIT 1", "COMMIT")
    sql("SET SESSION binlog_transaction_compression = ON", f"INSERT INTO plain VALUES {PLAIN}, {NULLS}")
    sql("SET SESSION binlog_transaction_compression = OFF", "UPDATE loose SET word = 'z'")


def test_a_copy_has_the_rows_of_the_snapshot_and_of_all_that_follows(mysql_sql: Client) -> None:
    begin(mysql_sql)
    copy = Copy()
    for _ in range(3):
        copy.restart()
        with Pulling(mysql_sql.server, f"{mysql_sql.database}.*", copies=(copy,)) as pulling:
            pulling.wait_until_told(Connected)
            change(mysql_sql)
            pulling.catch_up(mysql_end(mysql_sql.server))
        change(mysql_sql)
    assert copy.checkpoint is not None
    ((uuid,),) = mysql_sql("SELECT @@server_uuid")
    assert f" gtid={uuid}:1-" in copy.checkpoint.position
    assert copy.checkpoint.position.endswith(f" server={uuid}")
    copy.restart()
    with Pulling(mysql_sql.server, f"{mysql_sql.database}.*", copies=(copy,)) as pulling:
        pulling.catch_up(mysql_end(mysql_sql.server))
    assert {name: sum(rows.values()) for name, rows in rows_of(copy).items()} == {
        name: sum(rows.values()) for name, rows in source_rows(mysql_sql.server, mysql_sql.database).items()
    }


def printed(server: PrivateServer, database: str) -> dict[str, Counter[Any]]:
    """The rows of all tables, in a session in UTC."""
    found = {}
    utc = "SET time_zone = '+00:00'"
    with server.connect(database=database, init_command=utc) as connection, connection.cursor() as cursor:
        for name in TABLES:
            cursor.execute(f"SELECT * FROM {name}")
            found[name] = Counter(cursor.fetchall())
    return found


def copied(sql: Client, folder: Path, *sinks: dict[str, Any]) -> None:
    """Run a feed of the client's database until it has what is there now."""
    options = feed_options(
        {
            "data_dir": str(folder / "state"),
            "until": "now",
            "source": {"url": sql.server.url(), "tables": [f"{sql.database}.*"]},
            "sink": [{"name": f"copy{number}", **sink} for number, sink in enumerate(sinks)],
        }
    )
    feed = Feed(options, open_sinks(options))
    feed.start()
    feed_ended(feed)
    if feed.error is not None:
        raise feed.error


def test_mysql_mariadb_and_sqlite_get_the_same_rows(
    mysql_sql: Client, mysql97: MySql, mariadb: MariaDb, tmp_path: Path
) -> None:
    name = f"{mysql_sql.database}_copy"
    lite = tmp_path / "copy.db"
    begin(mysql_sql)
    try:
        for _ in range(3):
            copied(
                mysql_sql,
                tmp_path,
                {"url": mysql97.url(name)},
                {"url": mariadb.url(name), "collations": {"utf8mb4_0900_ai_ci": "utf8mb4_nopad_bin"}},
                {"url": f"sqlite:///{lite}"},
            )
            there = printed(mysql97, mysql_sql.database)
            assert printed(mysql97, name) == there
            assert printed(mariadb, name) == there
            with closing(sqlite3.connect(lite)) as connection:
                for table, rows in there.items():
                    full_name = f'"{mysql_sql.database}.{table}"'
                    assert connection.execute(f"SELECT COUNT(*) FROM {full_name}").fetchone() == (
                        rows.total(),
                    )
            change(mysql_sql)
    finally:
        for server in mysql97, mariadb:
            server.execute(f"DROP DATABASE IF EXISTS {name}")


def test_a_program_gets_the_changes_and_no_transaction_twice(mysql_sql: Client, tmp_path: Path) -> None:
    mysql_sql(
        "CREATE TABLE t (id INT PRIMARY KEY, doc JSON)", """INSERT INTO t VALUES (1, '{"a": [1, 2.5]}')"""
    )

    def changes() -> list[tuple[Any, ...]]:
        found = []
        with tidemill.open(
            mysql_sql.server.url(), [f"{mysql_sql.database}.*"], data_dir=tmp_path, until="now"
        ) as feed:
            for transaction in feed:
                found += [(row.op, row.before, row.after) for row in transaction.rows]
                feed.ack(transaction)
        return found

    assert changes() == [("insert", None, (1, '{"a": [1, 2.5]}'))]
    mysql_sql("UPDATE t SET doc = '[true]'", "INSERT INTO t VALUES (2, NULL)", "DELETE FROM t WHERE id = 1")
    assert changes() == [
        ("update", (1, '{"a": [1, 2.5]}'), (1, "[true]")),
        ("insert", None, (2, None)),
        ("delete", (1, "[true]"), None),
    ]
    assert changes() == []


def test_a_collation_that_the_target_lacks_is_named(
    mysql_sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    mysql_sql(
        "CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(9)) COLLATE utf8mb4_bin",
        "INSERT INTO t VALUES (1, 'a')",
    )
    mysql_sql("ALTER TABLE t MODIFY word VARCHAR(9) COLLATE utf8mb4_0900_as_cs")
    name = f"{mysql_sql.database}_copy"
    try:
        with pytest.raises(
            SinkError,
            match=r"column word of table .* has the collation utf8mb4_0900_as_cs, which the target lacks",
        ):
            copied(mysql_sql, tmp_path, {"url": mariadb.url(name)})
    finally:
        mariadb.execute(f"DROP DATABASE IF EXISTS {name}")


def test_definitions_of_mariadb_become_mysql_s(mysql97: MySql, sql: Client, tmp_path: Path) -> None:
    sql(
        """CREATE TABLE t (id VARCHAR(36) CHARACTER SET utf8mb3 DEFAULT uuid() PRIMARY KEY,
          doc JSON DEFAULT '{}', at DATETIME DEFAULT current_timestamp() ON UPDATE current_timestamp(),
          day DATE DEFAULT curdate(), y YEAR(4) DEFAULT 2001, n INT(5) DEFAULT (1 + 1),
          note TEXT DEFAULT 'it''s', raw BLOB DEFAULT x'00',
          zero DATE DEFAULT '0000-00-00', f FLOAT DEFAULT 1.5,
          both_ CHAR(9) DEFAULT concat('a''', 'b'), word VARCHAR(9) COLLATE utf8mb4_unicode_ci)"""
    )
    sql("""INSERT INTO t (id, doc, zero) VALUES ('1', '{"b":1,  "a":1.50}', DEFAULT)""")
    name = f"{sql.database}_copy"
    select = "SELECT id, doc, year(at) > 2000, y, n, note, raw, CAST(zero AS CHAR), f, both_, word FROM {}.t"
    try:
        copied(sql, tmp_path, {"url": mysql97.url(name)})
        sql("""UPDATE t SET doc = '[ 1.0 ]', word = 'x'""")
        copied(sql, tmp_path, {"url": mysql97.url(name)})
        with mysql97.connect() as connection, connection.cursor() as cursor:
            cursor.execute(select.format(name))
            there = list(cursor.fetchall())
            cursor.execute("SET SESSION sql_mode = ''")
            cursor.execute(f"INSERT INTO {name}.t (word) VALUES ('y')")
            cursor.execute(f"SELECT n, note, raw, y, doc, both_ FROM {name}.t WHERE word = 'y'")
            assert cursor.fetchall() == ((2, "it's", b"\0", 2001, "{}", "a'b"),)
        assert there == sql(select.format(sql.database))
    finally:
        mysql97.execute(f"DROP DATABASE IF EXISTS {name}")
