"""System-versioned and application-period tables of MariaDB: a copy has what SELECT returns."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.events import Row
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import feed_ended

from .pulling import Copy, Pulling, binlog_end, rows_of, source_rows

SYSTEM_TIME = (
    "s {0} GENERATED ALWAYS AS ROW START, e {0} GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)"
)
TABLES = {
    "hidden": "(id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING",
    "named": f"(id INT PRIMARY KEY, {SYSTEM_TIME.format('TIMESTAMP(6)')}, n INT) WITH SYSTEM VERSIONING",
    "keyless": "(id INT, n INT) WITH SYSTEM VERSIONING",
    "partly": "(id INT NOT NULL UNIQUE, n INT, loose INT WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING",
    "parted": "(id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING "
    "PARTITION BY SYSTEM_TIME LIMIT 2 PARTITIONS 4",
}
CHANGES = (
    "INSERT INTO {} (id, n) VALUES (1, 1), (2, 2), (3, 3)",
    "UPDATE {} SET n = n + 10 WHERE id < 3",
    "BEGIN",
    "UPDATE {} SET n = n + 100",
    "DELETE FROM {} WHERE id = 2",
    "INSERT INTO {} (id, n) VALUES (2, 5)",
    "UPDATE {} SET id = 4 WHERE id = 3",
    "COMMIT",
    "DELETE FROM {} WHERE id = 1",
    "INSERT INTO {} (id, n) VALUES (7, 8)",
)
LEAVES_OUT_COMPUTED = (11, 8, 9)
"""MariaDB from this version on logs updates and deletes without the columns that it computes."""


def in_words(tables: dict[str, Counter[Row]]) -> dict[str, Counter[tuple[str, ...]]]:
    """The rows, with a TIMESTAMP as the driver prints it in UTC."""
    return {
        name: Counter({tuple(str(v).removesuffix("+00:00") for v in row): n for row, n in rows.items()})
        for name, rows in tables.items()
    }


@pytest.fixture(params=["MariaDB, FULL", "MariaDB, MINIMAL", "MariaDB 11.8, MINIMAL"])
def server(request: pytest.FixtureRequest) -> Iterator[MariaDb]:
    """A server with a database `shop`."""
    version, metadata = request.param.split(", ")
    is_new = version.endswith("11.8")
    server: MariaDb = request.getfixturevalue("mariadb118" if is_new else "private_mariadb")
    if not is_new:
        server.start()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL time_zone = '+00:00'")
        cursor.execute(f"SET GLOBAL binlog_row_metadata = {metadata}")
        cursor.execute("CREATE DATABASE shop")
        yield server
        cursor.execute("DROP DATABASE shop")
        cursor.execute("SET GLOBAL binlog_row_metadata = FULL")
        cursor.execute("SET GLOBAL time_zone = 'SYSTEM'")


def test_present_rows_are_followed_and_past_ones_are_not(server: MariaDb) -> None:
    own = Client(server, "shop")
    for name, definition in TABLES.items():
        own(f"CREATE TABLE {name} {definition}", f"INSERT INTO {name} (id, n) VALUES (9, 9), (8, 8)")
        own(f"UPDATE {name} SET n = 7 WHERE id = 8")
    copy = Copy()
    with Pulling(own.server, "shop.*", copies=[copy]) as pulling:
        pulling.catch_up(binlog_end(own.server))
        for name in TABLES:
            own(*(statement.format(name) for statement in CHANGES))
        own("UPDATE partly SET loose = 1", "DELETE HISTORY FROM hidden", "DELETE FROM parted WHERE id = 9")
        pulling.catch_up(binlog_end(own.server))
    assert in_words(rows_of(copy)) == in_words(source_rows(server, "shop"))
    own.close()


def test_computed_columns_are_followed_unless_the_server_does_not_log_them(server: MariaDb) -> None:
    own = Client(server, "shop")
    own("CREATE TABLE t (id INT PRIMARY KEY, n INT, v INT AS (n + 1)) WITH SYSTEM VERSIONING")
    copy = Copy()
    with Pulling(own.server, "shop.*", copies=[copy]) as pulling:
        if version_of(own) < LEAVES_OUT_COMPUTED:
            pulling.catch_up(binlog_end(own.server))
            own(*(statement.format("t") for statement in CHANGES))
            pulling.catch_up(binlog_end(own.server))
            assert rows_of(copy) == source_rows(server, "shop")
        else:
            sentence = "the server logs updates and deletes without the generated columns of shop.t (v)"
            assert sentence in str(pulling.wait_for_error())
    own.close()


def test_computed_columns_are_left_out_and_those_of_the_period_are_not(server: MariaDb) -> None:
    own = Client(server, "shop")
    computed = "g INT AS (n + 1), {}, h VARCHAR(9) AS (CONCAT(n, 'x')) STORED"
    copied = {"hidden": "id, n", "named": "id, s, e, n", "keyless": "id, n", "partly": "id, n, loose"}
    for name, definition in TABLES.items():
        own(f"CREATE TABLE {name} {definition.replace('n INT', computed.format('n INT'))}")
        own(f"INSERT INTO {name} (id, n) VALUES (9, 9), (8, 8)", f"UPDATE {name} SET n = 7 WHERE id = 8")
    copy = Copy()
    with Pulling(own.server, "shop.*", copies=[copy], generated_columns="leave_out") as pulling:
        pulling.catch_up(binlog_end(own.server))
        for name in TABLES:
            own(*(statement.format(name) for statement in CHANGES))
        pulling.catch_up(binlog_end(own.server))
    present = {
        f"shop.{name}": Counter(own(f"SELECT {copied.get(name, 'id, n')} FROM {name}")) for name in TABLES
    }
    assert in_words(rows_of(copy)) == in_words(present)
    own.close()


def version_of(sql: Client) -> tuple[int, ...]:
    ((version,),) = sql("SELECT VERSION()")
    return tuple(int(number) for number in version.partition("-")[0].split("."))


def follow(sql: Client, folder: Path) -> None:
    """Run a feed into SQLite and MariaDB to the source's end; then every table of the copies is as here."""
    file, schema = folder / "copy.db", f"{sql.database}_copy"
    options = feed_options(
        {
            "data_dir": str(folder / "state"),
            "until": "now",
            "source": {"url": sql.server.url(), "tables": [f"{sql.database}.*"]},
            "sink": [
                {"name": "file", "url": f"sqlite:///{file}"},
                {"name": "server", "url": sql.server.url(schema)},
            ],
        }
    )
    feed = Feed(options, open_sinks(options))
    feed.start()
    feed_ended(feed)
    assert feed.error is None
    with closing(sqlite3.connect(file)) as copy:
        for (table,) in sql("SHOW TABLES"):
            present = rows(sql(f"SELECT * FROM {table}"))
            assert rows(sql(f"SELECT * FROM {schema}.{table}")) == present
            assert rows(copy.execute(f'SELECT * FROM "{sql.database}.{table}"').fetchall()) == present


def rows(found: list[tuple[Any, ...]]) -> list[list[str]]:
    return sorted([str(value) for value in row] for row in found)


def test_a_feed_follows_them_over_restarts_and_schema_changes(sql: Client, tmp_path: Path) -> None:
    sql(
        "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40)) WITH SYSTEM VERSIONING",
        "INSERT INTO item VALUES (4, 'four'), (5, 'five')",
        "UPDATE item SET name = 'z' WHERE id = 4",
        "CREATE TABLE price (id INT, a DATE, b DATE, PERIOD FOR valid (a, b), "
        "PRIMARY KEY (id, valid WITHOUT OVERLAPS))",
        "INSERT INTO price VALUES (1, '2020-01-01', '2020-12-31'), (2, '2020-01-01', '2020-12-31')",
        "DELETE FROM price FOR PORTION OF valid FROM '2020-03-01' TO '2020-04-01' WHERE id = 1",
    )
    follow(sql, tmp_path)
    sql(
        "SET system_versioning_alter_history = KEEP",
        "DELETE FROM item WHERE id < 5",
        "ALTER TABLE item ADD COLUMN n INT DEFAULT 3",
        "UPDATE item SET n = 4",
        "CREATE TABLE later (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING",
        "INSERT INTO later VALUES (1, 1), (2, 2)",
        "UPDATE later SET n = 3",
        "RENAME TABLE later TO last",
        "DELETE FROM last WHERE id = 1",
        "UPDATE price FOR PORTION OF valid FROM '2020-05-01' TO '2020-06-01' SET id = id + 5",
        "DELETE FROM price FOR PORTION OF valid FROM '2020-02-01' TO '2020-07-01' WHERE id = 2",
    )
    follow(sql, tmp_path)
    sql(
        "ALTER TABLE price ADD SYSTEM VERSIONING",
        "UPDATE price SET id = id + 20 WHERE id > 2",
        "UPDATE last SET n = 4",
        "INSERT INTO item VALUES (1, 'one', 1)",
        "ALTER TABLE item DROP SYSTEM VERSIONING",
        "UPDATE item SET n = 5",
    )
    follow(sql, tmp_path)
    sql(f"DROP DATABASE {sql.database}_copy")
