"""XA transactions that are prepared while the feed, the connection or the server ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidemill.puller.mysql.position import Position
from tidemill.testing.mariadb_client import Client

from .pulling import Copy, Pulling, binlog_end, mysql_end, rows_of, source_rows


@pytest.fixture(params=["mariadb", "mysql"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    server = request.getfixturevalue(f"private_{request.param}").start()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
    client = Client(server, "shop")
    yield client
    client.close()


def end_of(client: Client) -> Position:
    is_mysql = "MySql" in type(client.server).__name__
    return mysql_end(client.server) if is_mysql else binlog_end(client.server)


def prepare(client: Client, name: str, *statements: str) -> None:
    client(f"XA START '{name}'", *statements, f"XA END '{name}'", f"XA PREPARE '{name}'")
    client.close()  # a session is bound to its prepared transaction until it ends
    client.reconnect()


def test_a_prepared_transaction_counts_from_its_commit_on_whatever_ends_meanwhile(client: Client) -> None:
    client("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
    copy = Copy()
    before = {(1, 0): 1, (2, 0): 1, (3, 0): 1}
    with Pulling(client.server, "shop.*", copies=[copy]) as pulling:
        pulling.catch_up(end_of(client))
        prepare(client, "kept", "UPDATE t SET n = 1 WHERE id = 1")
        prepare(client, "void", "UPDATE t SET n = 2 WHERE id = 2")
        client("INSERT INTO t VALUES (4, 0)")
        pulling.catch_up(end_of(client))
    assert rows_of(copy) == {"shop.t": {**before, (4, 0): 1}}
    client.server.kill()
    client.server.start()
    client.reconnect()
    copy.restart()
    with Pulling(client.server, "shop.*", copies=[copy], retry_longest_seconds=0.3) as pulling:
        client("INSERT INTO t VALUES (5, 0)")
        pulling.catch_up(end_of(client))
        assert rows_of(copy) == {"shop.t": {**before, (4, 0): 1, (5, 0): 1}}
        client("XA COMMIT 'kept'", "XA ROLLBACK 'void'", "DELETE FROM t WHERE id = 3")
        pulling.catch_up(end_of(client))
    assert rows_of(copy) == source_rows(client.server, "shop")
    assert rows_of(copy)["shop.t"][1, 1] == 1
