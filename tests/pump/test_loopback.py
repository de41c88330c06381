"""Loopback control: what a feed in the other direction has written isn't written back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import eventually

from .place import Following

MARKS = "retl._drainer_repl_mark"
COLUMNS = (
    "id bigint not null, channel_id bigint not null default 0, val bigint default 0, channel_info varchar(64)"
)


@pytest.fixture
def server(mariadb) -> Iterator[MariaDb]:
    """The server; nobody else uses the schema of marks in it."""
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS retl")
        yield mariadb
        cursor.execute("DROP DATABASE IF EXISTS retl")


def following(directory: Path, source: dict[str, Any], url: str, **sink: Any) -> Following:
    directory.mkdir()
    found = {
        "name": directory.name,
        "data_dir": str(directory),
        "source": source,
        "sink": [{"url": url, "loopback_channel": 1, "sync_ddl": False, **sink}],
    }
    options = feed_options(found)
    return Following(Feed(options, open_sinks(options)))


def ids(server: MariaDb, schema: str) -> list[int]:
    return [id_ for (id_,) in server.execute("SELECT id FROM t ORDER BY id", database=schema)]


def test_two_databases_that_replicate_to_each_other_do_not_loop(tmp_path, server, database):
    other = f"{database}_other"
    with ExitStack() as stack:
        connection = stack.enter_context(server.connect())
        cursor = stack.enter_context(connection.cursor())
        stack.callback(cursor.execute, f"DROP DATABASE IF EXISTS {other}")
        for statement in (
            f"CREATE DATABASE {other}",
            "CREATE DATABASE retl",
            f"CREATE TABLE {MARKS} ({COLUMNS}, PRIMARY KEY (id, channel_id))",
            *(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)" for schema in (database, other)),
        ):
            cursor.execute(statement)
        feeds = []
        for source, target in ((database, other), (other, database)):
            given = {"url": server.url(), "tables": [f"{source}.t", MARKS]}
            feeds.append(stack.enter_context(following(tmp_path / source, given, server.url(target))))
        for feed in feeds:
            feed.until(lambda status: status.sinks[0].position and not status.sinks[0].loading)
        for number in range(1, 21, 2):
            cursor.execute(f"INSERT INTO {database}.t VALUES ({number})")
            cursor.execute(f"INSERT INTO {other}.t VALUES ({number + 1})")
        connection.commit()
        every = list(range(1, 21))
        for schema in (database, other):
            eventually(lambda schema=schema: ids(server, schema) == every)
        cursor.execute(f"ALTER TABLE {database}.t ADD COLUMN n INT")  # isn't replicated
        for number, schema in ((21, database), (22, other)):
            cursor.execute(f"INSERT INTO {schema}.t (id) VALUES ({number})")
        connection.commit()
        eventually(lambda: ids(server, database) == [*every, 21, 22])


def test_transactions_of_pumps_with_the_mark_are_left_out_and_the_others_are_marked(
    tmp_path, tidb, server, database
):
    tidb.execute("create database shop")
    tidb.execute("create database retl")
    tidb.execute("create table shop.t (id int primary key)")
    tidb.execute(f"create table {MARKS} ({COLUMNS}, primary key (id, channel_id))")
    source = {
        "url": f"pump://{tidb.pumps.address}",
        "pd": tidb.pd_address.split(","),
        "tables": ["shop.*", MARKS],
    }
    with following(tmp_path / "pumps", source, server.url(database)) as feed:
        feed.until(lambda status: status.sinks[0].position and not status.sinks[0].loading)
        for number, channel in ((1, 0), (2, 1), (3, 2), (4, 0)):
            with tidb.transaction() as txn:
                txn.insert("shop.t", (number,))
                if channel:
                    txn.insert(MARKS, (number, channel, 1, None))
        eventually(lambda: ids(server, database) == [1, 3, 4])
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, channel_id, val > 0 FROM {MARKS}")
        assert list(cursor.fetchall()) == [(1, 1, 1)]
