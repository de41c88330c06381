"""XA transactions that are prepared while the feed, the connection or the server ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tidemill.codec.mysql.position import Position
from tidemill.errors import SourceError
from tidemill.events import Checkpoint
from tidemill.puller.mysql import pull, xa_recover
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.requirements import survey
from tidemill.puller.mysql.snapshot import Snapshot
from tidemill.puller.puller import Retrying
from tidemill.testing.mariadb_client import Client
from tidemill.testing.private_server import PASSWORD

from .pulling import Copy, Pulling, binlog_end, mysql_end, rows_of, source_rows


@pytest.fixture(params=["mariadb", "mysql"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    server = request.getfixturevalue(f"private_{request.param}").start()
    server.execute("CREATE DATABASE shop")
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


WAYS = pytest.mark.parametrize("snapshot", [True, False], ids=["snapshot", "end"])


def copy_for(snapshot: bool) -> Copy:
    copy = Copy()
    if not snapshot:
        copy.checkpoint = Checkpoint(0, "", None)
        copy.restart()
    return copy


def waits(pulling: Pulling) -> bool:
    return any(isinstance(one, Retrying) and "XA transactions" in str(one.error) for one in pulling.messages)


@WAYS
def test_a_start_waits_for_transactions_that_are_prepared_before_it(client: Client, snapshot: bool) -> None:
    client("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 0), (2, 0)")
    prepare(client, "kept", "UPDATE t SET n = 1 WHERE id = 1")
    prepare(client, "void", "UPDATE t SET n = 2 WHERE id = 2")
    copy = copy_for(snapshot)
    with Pulling(client.server, "shop.*", copies=[copy], snapshot=snapshot) as pulling:
        pulling.wait_for(lambda: waits(pulling))
        client("XA COMMIT 'kept'", "XA ROLLBACK 'void'")
        pulling.wait_for(lambda: copy.checkpoint.position if copy.checkpoint else "")
        client("INSERT INTO t VALUES (3, 0)") if snapshot else client("CREATE TABLE u (id INT)")
        pulling.catch_up(end_of(client))
    if snapshot:
        assert rows_of(copy) == source_rows(client.server, "shop")


def test_a_transaction_that_stays_prepared_stops_the_start(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client("CREATE TABLE t (id INT PRIMARY KEY)")
    prepare(client, "left", "INSERT INTO t VALUES (1)")
    given = MysqlOptions(port=client.server.port, password=PASSWORD)
    (warning,) = [
        finding.text
        for finding in survey(given, lambda schema, _: schema == "shop").findings
        if "XA" in finding.text
    ]
    assert warning.startswith("the feed waits 10 s for its start: XA transactions are prepared whose rows")
    monkeypatch.setattr(xa_recover, "PREPARED_SECONDS", 0.0)
    with Pulling(client.server, "shop.*") as pulling:
        error = pulling.wait_for_error()
    assert isinstance(error, SourceError)
    assert "XA transactions are prepared whose rows are in the log before the start (" in str(error)
    assert str(error).endswith("): end them by XA COMMIT or XA ROLLBACK, then start again")


@WAYS
def test_a_transaction_prepared_just_before_the_start_is_followed(
    client: Client, monkeypatch: pytest.MonkeyPatch, snapshot: bool
) -> None:
    client("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 0)")

    def begin(*arguments: object) -> Snapshot:
        monkeypatch.undo()
        prepare(client, "late", "UPDATE t SET n = 1 WHERE id = 1", "INSERT INTO t VALUES (2, 2)")
        client("INSERT INTO t VALUES (3, 0)")
        return Snapshot(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(pull, "Snapshot", begin)
    copy = copy_for(snapshot)
    with Pulling(client.server, "shop.*", copies=[copy], snapshot=snapshot) as pulling:
        pulling.wait_for(lambda: copy.checkpoint and copy.checkpoint.position)
    if not snapshot:
        copy.tables["shop.t"] = Counter([(1, 0), (3, 0)])
    copy.restart()
    with Pulling(client.server, "shop.*", copies=[copy]) as pulling:
        client("XA COMMIT 'late'")
        pulling.catch_up(end_of(client))
    assert rows_of(copy) == source_rows(client.server, "shop")
    assert rows_of(copy)["shop.t"] == {(1, 1): 1, (2, 2): 1, (3, 0): 1}
