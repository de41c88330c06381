"""Positions of a live MySQL: new files, purged and reset logs, idle time, TLS, the ways to resume."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tidemill.codec.mysql.position import Position
from tidemill.errors import CheckpointError, SourceError
from tidemill.events import Checkpoint, compose_ts
from tidemill.puller.puller import Connected, Retrying
from tidemill.testing.mariadb_client import Client
from tidemill.testing.mysql import MySql

from .pulling import Copy, Pulling, mysql_end, rows_of, source_rows


@pytest.fixture
def own(private_mysql: MySql) -> Client:
    private_mysql.start().execute("CREATE DATABASE shop")
    return Client(private_mysql, "shop")


def follow(sql: Client, *copies: Copy, **options: object) -> Pulling:
    return Pulling(sql.server, f"{sql.database}.*", copies=copies, **options)


def failure(sql: Client, position: str, ts: int = 1 << 62) -> str:
    ((uuid,),) = sql("SELECT @@server_uuid")
    with follow(sql, start=Checkpoint(ts, position, None, f"mysql server {uuid}")) as pulling:
        error = pulling.wait_for_error()
    assert isinstance(error, SourceError | CheckpointError), error
    return str(error)


def test_new_files_and_new_table_ids_are_followed(mysql_sql: Client) -> None:
    mysql_sql("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    copy = Copy()
    with follow(mysql_sql, copy) as pulling:
        pulling.wait_until_told(Connected)
        for number in range(4):
            mysql_sql("BEGIN", f"INSERT INTO t VALUES ({number}, 0)", "UPDATE t SET n = n + 1", "COMMIT")
            mysql_sql("FLUSH TABLES", f"DELETE FROM t WHERE id = {number - 2}", "FLUSH BINARY LOGS")
        pulling.catch_up(mysql_end(mysql_sql.server))
    assert rows_of(copy) == source_rows(mysql_sql.server, mysql_sql.database)
    assert not any(isinstance(message, Retrying) for message in pulling.messages)


def test_an_idle_source_moves_the_resolved_ts(mysql_sql: Client) -> None:
    mysql_sql("CREATE TABLE t (id INT PRIMARY KEY)")
    with follow(mysql_sql, snapshot=False, heartbeat_seconds=0.05) as pulling:
        pulling.wait_for(lambda: pulling.resolved)
        first = pulling.resolved
        pulling.wait_for(lambda: pulling.resolved > first)
    assert not any(isinstance(message, Retrying) for message in pulling.messages)


@pytest.mark.parametrize("by", ["file and offset", "gtid"])
def test_a_feed_resumes_by(by: str, mysql_sql: Client) -> None:
    mysql_sql("CREATE TABLE t (id INT PRIMARY KEY)")
    copy = Copy()
    with follow(mysql_sql, copy) as pulling:
        pulling.catch_up(mysql_end(mysql_sql.server))
    assert copy.checkpoint is not None
    at = Position.parse(copy.checkpoint.position)
    at = at.without_gtids if by == "file and offset" else replace(at, by_gtid=True)
    copy.checkpoint = replace(copy.checkpoint, position=str(at))
    copy.restart()
    mysql_sql("INSERT INTO t VALUES (1), (2)", "DELETE FROM t WHERE id = 1")
    with follow(mysql_sql, copy) as pulling:
        end = mysql_end(mysql_sql.server)
        pulling.wait_for(lambda: pulling.items and pulling.items[-1].position.partition(" ")[0] == str(end))
    assert rows_of(copy) == source_rows(mysql_sql.server, mysql_sql.database)


def test_a_feed_begins_after_a_set_of_gtids(mysql_sql: Client) -> None:
    mysql_sql("CREATE TABLE t (id INT PRIMARY KEY)")
    ((gtids,),) = mysql_sql("SELECT @@gtid_executed")
    mysql_sql("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    with follow(mysql_sql, position="".join(gtids.split())) as pulling:
        pulling.wait_for(lambda: len([item for item in pulling.items if getattr(item, "rows", ())]) == 2)
    assert [row.after for item in pulling.items for row in getattr(item, "rows", ())] == [(1,), (2,)]


def test_a_purged_position_names_what_the_server_still_has(own: Client) -> None:
    own("CREATE TABLE t (id INT PRIMARY KEY)", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    end = mysql_end(own.server)
    own(f"PURGE BINARY LOGS TO '{end.file}'")
    message = failure(own, "binlog.000001:400")
    assert "can't read the binlog from binlog.000001:400: Could not find first log file" in message
    assert f"the server holds {end.file} to {end.file} (which ends at {end.offset})" in message


def test_gtids_that_were_purged_name_what_the_server_still_has(own: Client) -> None:
    own("CREATE TABLE t (id INT PRIMARY KEY)")
    ((gtids,),) = own("SELECT @@gtid_executed")
    own("INSERT INTO t VALUES (1)", "FLUSH BINARY LOGS")
    end = mysql_end(own.server)
    own(f"PURGE BINARY LOGS TO '{end.file}'")
    with follow(own, position="".join(gtids.split())) as pulling:
        message = str(pulling.wait_for_error())
    assert "purged" in message
    assert f"the server holds {end.file} to {end.file}" in message


def test_a_binlog_that_was_reset_is_no_longer_what_the_checkpoint_is_of(own: Client) -> None:
    own("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    old = mysql_end(own.server)
    own("RESET BINARY LOGS AND GTIDS", "INSERT INTO t VALUES (2)")
    end = mysql_end(own.server)
    assert "the binlog was reset, or this is another server" in failure(own, str(end), ts=compose_ts(1))
    assert "can't read the binlog from" in failure(own, f"{old.file}:{end.offset + 5000}")


def test_a_server_is_followed_over_tls(own: Client) -> None:
    own("CREATE TABLE t (id INT PRIMARY KEY)", "SET GLOBAL require_secure_transport = ON")
    authority = str(own.server.data_directory / "ca.pem")
    copy = Copy()
    with follow(own, copy, ssl_ca=authority, ssl_verify_identity=False) as pulling:
        own("INSERT INTO t VALUES (1)")
        pulling.catch_up(mysql_end(own.server))
    assert rows_of(copy) == source_rows(own.server, "shop")
    copy.restart()
    at = Position.parse(copy.checkpoint.position)
    copy.checkpoint = replace(copy.checkpoint, position=str(replace(at, by_gtid=True)))
    copy.restart()
    with follow(own, copy, ssl_ca=authority, ssl_verify_identity=False) as pulling:
        own("INSERT INTO t VALUES (2)")
        pulling.wait_for(lambda: rows_of(copy) == source_rows(own.server, "shop"))
