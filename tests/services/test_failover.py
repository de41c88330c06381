"""A primary MariaDB with two replicas: the feed goes on at another of them, by GTID."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import pymysql
import pytest
from msgspec.structs import replace

import tidemill
from tidemill.codec.mysql.gtid import MySqlGtids
from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.mysql.position import Position
from tidemill.errors import CheckpointError
from tidemill.events import PENDING, REST, WHOLE, Checkpoint
from tidemill.puller.mysql import replication
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.pull import Pull
from tidemill.puller.mysql.requirements import survey
from tidemill.puller.puller import Connected, Retrying
from tidemill.testing.mariadb import PASSWORD, MariaDb
from tidemill.testing.mysql import MySql
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.progress import eventually

from .pulling import Copy, Pulling, binlog_end, mysql_end, rows_of, source_rows

OPTIONS = ("--log-slave-updates", "--gtid-strict-mode=ON")
INDEX = "id INT PRIMARY KEY AUTO_INCREMENT, a INT"


class Topology:
    """Three servers; `lead` makes one of them the primary of others."""

    def __init__(self, directory: Path, template: Path) -> None:
        self.servers = [MariaDb(directory / name, *OPTIONS, template=template) for name in ("a", "b", "c")]
        for server in self.servers:
            server.start()

    def lead(self, primary: MariaDb, *replicas: MariaDb) -> None:
        for replica in replicas:
            replica.execute(
                "STOP SLAVE",
                f"CHANGE MASTER TO master_host = '127.0.0.1', master_port = {primary.port}, "
                f"master_user = 'root', master_password = '{PASSWORD}', master_use_gtid = slave_pos, "
                "master_connect_retry = 1",
                "START SLAVE",
            )

    def replicated(self, primary: MariaDb, *replicas: MariaDb) -> None:
        ((reached,),) = primary.execute("SELECT @@gtid_binlog_pos")
        for replica in replicas:
            eventually(lambda one=replica: one.execute("SELECT @@gtid_binlog_pos") == [(reached,)])

    def stop(self) -> None:
        for server in self.servers:
            server.stop()


@pytest.fixture
def topology(tmp_path: Path, mariadb_template: Path) -> Iterator[Topology]:
    made = Topology(tmp_path, mariadb_template)
    a, *others = made.servers
    made.lead(a, *others)
    a.execute(
        "CREATE DATABASE shop", f"CREATE TABLE shop.t ({INDEX})", "INSERT INTO shop.t (a) VALUES (1), (2)"
    )
    made.replicated(a, *others)
    yield made
    made.stop()


def end_of(server: MariaDb) -> Position:
    """The end of a server's binlog, comparable with positions on other servers."""
    ((gtids,),) = server.execute("SELECT @@gtid_binlog_pos")
    return replace(binlog_end(server), gtid=gtids, server=str(server.server_id))


def addresses(*servers: PrivateServer) -> tuple[str, ...]:
    return tuple(f"{server.host}:{server.port}" for server in servers)


def write(server: PrivateServer, count: int) -> None:
    """Transactions of several rows, until `count` are done or the server is gone."""
    try:
        with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
            for number in range(count):
                cursor.execute(f"INSERT INTO shop.t (a) VALUES ({number}), ({number})")
                cursor.execute(f"UPDATE shop.t SET a = a + 1 WHERE id % 50 = {number % 50}")
                cursor.execute(f"DELETE FROM shop.t WHERE id % 101 = {number % 101}")
                connection.commit()
    except pymysql.err.Error:
        pass


def following(
    server: PrivateServer, *copies: Copy, others: tuple[PrivateServer, ...] = (), **options: Any
) -> Pulling:
    return Pulling(
        server, "shop.*", copies=copies, failover=addresses(*others), retry_first_seconds=0.05, **options
    )


def test_when_the_primary_is_killed_the_feed_goes_on_at_a_replica(topology: Topology) -> None:
    a, b, c = topology.servers
    copy = Copy()  # fails for a row that comes twice
    with following(a, copy, others=(b, c)) as pulling:
        pulling.catch_up(end_of(a))
        seen = len(pulling.items)
        writers = [Thread(target=write, args=(a, 200)) for _ in range(2)]
        for writer in writers:
            writer.start()
        pulling.hold_once(lambda: len(pulling.items) > seen + 50)
        for writer in writers:
            writer.join()
        topology.replicated(a, b, c)
        a.kill()
        pulling.release()
        pulling.wait_until_told(Retrying)
        b.execute("STOP SLAVE", "RESET SLAVE ALL")
        topology.lead(b, c)
        write(b, 20)
        pulling.catch_up(end_of(b))
        assert pulling.error is None
        assert rows_of(copy) == source_rows(b, "shop")


def test_a_restart_goes_on_at_a_replica_and_back_at_the_first_server(topology: Topology) -> None:
    a, b, _ = topology.servers
    copy = Copy()
    with following(a, copy) as pulling:
        pulling.catch_up(end_of(a))
    assert copy.checkpoint is not None
    source = copy.checkpoint.source
    for server in b, a, b:
        write(a, 5)
        topology.replicated(a, b)
        copy.restart()
        with following(server, copy) as pulling:
            pulling.catch_up(end_of(server))
        assert rows_of(copy) == source_rows(a, "shop")
        assert copy.checkpoint.position.endswith(" by=gtid")
    assert copy.checkpoint.source == source


def test_a_sink_that_is_ahead_gets_nothing_twice_at_a_replica(topology: Topology) -> None:
    a, b, _ = topology.servers
    late, ahead = Copy(), Copy()
    with following(a, late, ahead) as pulling:
        pulling.catch_up(end_of(a))
    write(a, 5)
    ahead.restart()
    with following(a, ahead) as pulling:
        pulling.catch_up(end_of(a))
    write(a, 5)
    topology.replicated(a, b)
    for copy in late, ahead:
        copy.restart()
    with following(b, late, ahead) as pulling:
        pulling.catch_up(end_of(b))
    assert rows_of(late) == rows_of(ahead) == source_rows(a, "shop")


def test_a_replica_that_lost_what_the_feed_has_is_an_error(topology: Topology) -> None:
    """The primary died with transactions that no replica has, and another history goes on."""
    a, b, _ = topology.servers
    b.execute("STOP SLAVE")
    copy = Copy()
    write(a, 1)
    with following(a, copy) as pulling:
        pulling.catch_up(end_of(a))
    a.kill()
    write(b, 5)
    copy.restart()
    with following(b, copy) as pulling:
        error = pulling.wait_for_error()
    assert "which is not in the master's binlog" in str(error)


def test_a_replica_that_lags_is_waited_for(topology: Topology) -> None:
    a, b, _ = topology.servers
    copy = Copy()
    with following(a, copy) as pulling:
        pulling.catch_up(end_of(a))
    b.execute("STOP SLAVE")
    write(a, 5)
    copy.restart()
    with following(a, copy) as pulling:
        pulling.catch_up(end_of(a))
    copy.restart()
    with following(b, copy) as pulling:
        pulling.wait_until_told(Retrying)
        (retrying, *_) = [message for message in pulling.messages if isinstance(message, Retrying)]
        assert f"{addresses(b)[0]} is behind: it has" in retrying.error
        b.execute("START SLAVE")
        topology.replicated(a, b)
        write(a, 5)
        topology.replicated(a, b)
        pulling.catch_up(end_of(b))
    assert rows_of(copy) == source_rows(a, "shop")


def test_a_replica_whose_binlog_was_purged_beyond_the_checkpoint_is_an_error(topology: Topology) -> None:
    a, b, _ = topology.servers
    copy = Copy()
    with following(a, copy) as pulling:
        pulling.catch_up(end_of(a))
    write(a, 5)
    topology.replicated(a, b)
    b.execute("FLUSH BINARY LOGS")
    ((last, *_),) = b.execute("SHOW MASTER STATUS")
    purge = f"PURGE BINARY LOGS TO '{last}'"  # it leaves files that the server still needs
    eventually(lambda: b.execute(purge, "SHOW BINARY LOGS")[0][0] == last)
    copy.restart()
    with following(b, copy) as pulling:
        error = pulling.wait_for_error()
    assert "can't read the binlog" in str(error)
    assert "Load all tables again (tidemill resume FEED --resnapshot '*')" in str(error)


def test_a_server_of_another_topology_is_refused(topology: Topology, private_mariadb: MariaDb) -> None:
    copy = Copy()
    with following(topology.servers[0], copy) as pulling:
        pulling.catch_up(end_of(topology.servers[0]))
    private_mariadb.options = ("--gtid-domain-id=7",)
    private_mariadb.start().execute("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT)")
    copy.restart()
    with following(private_mariadb, copy) as pulling:
        error = pulling.wait_for_error()
    assert isinstance(error, CheckpointError)
    assert "don't show that it replicates the same changes" in str(error)


def test_an_unrelated_server_of_the_same_domain_is_refused(
    topology: Topology, private_mariadb: MariaDb
) -> None:
    copy = Copy()
    with following(topology.servers[0], copy) as pulling:
        pulling.catch_up(end_of(topology.servers[0]))
    private_mariadb.start().execute("CREATE DATABASE shop", f"CREATE TABLE shop.t ({INDEX})")
    write(private_mariadb, 20)
    copy.restart()
    with following(private_mariadb, copy) as pulling:
        error = pulling.wait_for_error()
    assert "which is not in the master's binlog" in str(error)


def test_a_checkpoint_without_gtids_resumes_on_its_server_only(topology: Topology) -> None:
    a, b, _ = topology.servers
    copy = Copy()
    with following(a, copy) as pulling:
        pulling.catch_up(end_of(a))
    at = copy.checkpoint
    assert at is not None
    source = f"mariadb server {a.server_id}"
    copy.checkpoint = old = Checkpoint(at.ts, at.position.partition(" ")[0], None, source)
    write(a, 5)
    topology.replicated(a, b)
    copy.restart()
    with following(b, copy, start=old) as pulling:
        error = pulling.wait_for_error()
    assert isinstance(error, CheckpointError)
    copy.restart()
    with following(a, copy) as pulling:
        pulling.wait_until_told(Connected)
        pulling.catch_up(end_of(a))
    assert rows_of(copy) == source_rows(a, "shop")
    assert " gtid=0-" in copy.checkpoint.position


def test_a_feed_may_begin_after_a_set_of_gtids(topology: Topology) -> None:
    a, b, _ = topology.servers
    ((gtids,),) = a.execute("SELECT @@gtid_binlog_pos")
    write(a, 3)
    topology.replicated(a, b)
    with Pulling(b, "shop.*", position=gtids) as pulling:
        end = binlog_end(b)
        pulling.wait_for(lambda: pulling.items and pulling.items[-1].position.startswith(f"{end} "))
    assert sum(len(item.rows) > 0 for item in pulling.items if hasattr(item, "rows")) == 3


def test_a_feed_goes_on_at_any_server_of_its_topology(topology: Topology, tmp_path: Path) -> None:
    a, b, c = topology.servers

    def keys(server: MariaDb, **source: Any) -> list[int]:
        found = []
        with tidemill.open(
            server.url(), ["shop.*"], data_dir=tmp_path / "feed", until="now", source_options=source
        ) as feed:
            for transaction in feed:
                found += [row.after[0] for row in transaction.rows if row.op == "insert"]
                feed.ack(transaction)
        return found

    insert = "INSERT INTO shop.t VALUES ({}, 0)"
    assert keys(a) == [1, 2]
    a.execute(insert.format(10))
    topology.replicated(a, b, c)
    assert keys(b) == [10]
    assert keys(b) == []
    a.kill()
    b.execute(insert.format(11))
    assert keys(a, failover=addresses(b)) == [11]
    b.execute(insert.format(12))
    topology.lead(b, c)
    topology.replicated(b, c)
    assert keys(c) == [12]


# --- MySQL


@pytest.fixture
def mysqls(tmp_path: Path, mysql_template: Path) -> Iterator[list[MySql]]:
    """A primary and its replica."""
    servers = [MySql(tmp_path / name, template=mysql_template) for name in ("a", "b")]
    try:
        a, b = (server.start() for server in servers)
        b.execute(
            "RESET BINARY LOGS AND GTIDS",
            f"CHANGE REPLICATION SOURCE TO source_host = '127.0.0.1', source_port = {a.port}, "
            f"source_user = 'root', source_password = '{PASSWORD}', source_auto_position = 1, "
            "get_source_public_key = 1, source_connect_retry = 1",
            "START REPLICA",
        )
        a.execute(
            "CREATE DATABASE shop", f"CREATE TABLE shop.t ({INDEX})", "INSERT INTO shop.t (a) VALUES (1)"
        )
        mysql_replicated(a, b)
        yield servers
    finally:
        for server in servers:
            server.stop()


def mysql_replicated(primary: MySql, replica: MySql) -> None:
    reached = primary.execute("SELECT @@gtid_executed")
    eventually(lambda: replica.execute("SELECT @@gtid_executed") == reached)


def end_of_mysql(server: MySql) -> Position:
    ((gtids, uuid),) = server.execute("SELECT @@gtid_executed, @@server_uuid")
    return replace(mysql_end(server), gtid=gtids, server=uuid)


def test_of_mysql_too_the_feed_goes_on_at_a_replica(mysqls: list[MySql]) -> None:
    a, b = mysqls
    copy = Copy()
    with following(a, copy, others=(b,)) as pulling:
        pulling.catch_up(end_of_mysql(a))
        write(a, 10)
        pulling.catch_up(end_of_mysql(a))
        mysql_replicated(a, b)
        a.kill()
        write(b, 10)
        pulling.catch_up(end_of_mysql(b))
    assert rows_of(copy) == source_rows(b, "shop")
    copy.restart()
    write(b, 3)
    with following(b, copy) as pulling:
        pulling.catch_up(end_of_mysql(b))
    assert rows_of(copy) == source_rows(b, "shop")


def test_a_mysql_that_lacks_transactions_is_behind_and_a_stranger_is_refused(mysqls: list[MySql]) -> None:
    a, b = mysqls
    copy = Copy()
    b.execute("STOP REPLICA")
    write(a, 3)
    with following(a, copy) as pulling:
        pulling.catch_up(end_of_mysql(a))
    copy.restart()
    with following(b, copy) as pulling:
        pulling.wait_until_told(Retrying)
        assert "is behind: it has" in next(m.error for m in pulling.messages if isinstance(m, Retrying))
        b.execute("START REPLICA")
        write(a, 3)
        mysql_replicated(a, b)
        pulling.catch_up(end_of_mysql(b))
    assert rows_of(copy) == source_rows(a, "shop")
    b.execute("STOP REPLICA", "RESET BINARY LOGS AND GTIDS", "INSERT INTO shop.t VALUES (1000, 1)")
    copy.restart()
    with following(b, copy) as pulling:
        assert isinstance(pulling.wait_for_error(), CheckpointError)


def test_a_mysql_whose_gtids_have_tags_is_followed_to_a_replica(mysqls: list[MySql]) -> None:
    a, b = mysqls
    copy = Copy()
    tagged = "SET gtid_next = 'AUTOMATIC:Nightly_job'"
    with following(a, copy, others=(b,)) as pulling:
        pulling.catch_up(end_of_mysql(a))
        a.execute(tagged, "INSERT INTO shop.t (a) VALUES (7)", "INSERT INTO shop.t (a) VALUES (8)")
        write(a, 3)
        pulling.catch_up(end_of_mysql(a))
        mysql_replicated(a, b)
        a.kill()
        b.execute(tagged, "UPDATE shop.t SET a = 9 WHERE a = 7")
        write(b, 3)
        pulling.catch_up(end_of_mysql(b))
    assert rows_of(copy) == source_rows(b, "shop")
    ((executed,),) = b.execute("SELECT @@gtid_executed")
    assert ":nightly_job:1-2" in executed
    assert copy.checkpoint is not None
    followed, there = MySqlGtids(Position.parse(copy.checkpoint.position).gtid), MySqlGtids(executed)
    assert followed.contains(there)
    assert there.contains(followed)
    copy.restart()
    b.execute(tagged, "DELETE FROM shop.t WHERE a = 8")
    with following(b, copy) as pulling:
        pulling.catch_up(end_of_mysql(b))
    assert rows_of(copy) == source_rows(b, "shop")


def test_a_replica_that_stops_replicating_is_noticed(
    topology: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "LOOK_SECONDS", 0.1)
    _, replica, _ = topology.servers
    copy = Copy()

    def told(pulling: Pulling) -> list[object]:
        return [one for one in pulling.messages if isinstance(one, Retrying)]

    with Pulling(replica, "shop.*", copies=[copy]) as pulling:
        pulling.catch_up(end_of(replica))
        replica.execute("STOP SLAVE SQL_THREAD")
        pulling.wait_for(lambda: told(pulling))
        (first, *_) = told(pulling)
        assert "and doesn't replicate: its SQL thread is at 'No'" in str(first)
        given = MysqlOptions(port=replica.port, password=PASSWORD)
        warnings = [one.text for one in survey(given, lambda schema, _: schema == "shop").findings]
        assert any("doesn't replicate" in text for text in warnings)
        replica.execute("START SLAVE SQL_THREAD")
        pulling.wait_for(lambda: isinstance(pulling.messages[-1], Connected))


def test_a_load_begins_at_a_replica_that_logs_nothing_more(topology: Topology) -> None:
    a, b, _ = topology.servers
    a.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    left = binlog_end(a)
    ((gtid, identity),) = a.execute("SELECT @@gtid_binlog_pos, @@server_id")
    start = Checkpoint(
        1,
        str(replace(left, gtid=gtid, server=str(identity))),
        {"shop.t": PENDING, REST: WHOLE},
        f"mariadb server {identity}",
    )
    options = MysqlOptions(port=b.port, password=PASSWORD, heartbeat_seconds=0.2, snapshot_workers=1)
    pull = Pull(options, lambda schema, _: schema == "shop", Layouts(), start, (), monotonic)
    with closing(pull.steps()) as steps:
        eventually(lambda: (next(steps), pull.statistics().state == "following")[1], 20)
