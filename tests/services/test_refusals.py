"""Conditions that stop a puller: one clear sentence each, saying what to do."""

from __future__ import annotations

from typing import Any

from tidemill.errors import CheckpointError, SourceError
from tidemill.events import Checkpoint, compose_ts
from tidemill.puller.puller import Connected
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually

from .pulling import VERSIONED_BY_TRANSACTIONS, Pulling, binlog_end


def failure(sql: Client, start: Checkpoint | None = None, **options: Any) -> str:
    """The error of a puller that can't follow."""
    with Pulling(sql.server, f"{sql.database}.*", start=start, **options) as pulling:
        error = pulling.wait_for_error()
    assert isinstance(error, SourceError | CheckpointError), error
    return str(error)


def resumed(server: MariaDb, position: str, ts: int = 1 << 62) -> Checkpoint:
    return Checkpoint(ts, position, None, f"mariadb server {server.server_id}")


def test_a_purged_position_names_what_the_server_still_has(own: Client) -> None:
    own("CREATE TABLE t (id INT)", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    last = binlog_end(own.server).file
    # Until this event is in the log, a purge spares older ones, and the log's end moves.
    events = f"SHOW BINLOG EVENTS IN '{last}'"
    eventually(lambda: any(row[2] == "Binlog_checkpoint" and row[5] == last for row in own(events)))
    end = binlog_end(own.server)
    own("PURGE BINARY LOGS TO 'binlog.000003'")
    message = failure(own, resumed(own.server, "binlog.000002:400"))
    assert "can't read the binlog from binlog.000002:400: Could not find first log file" in message
    assert f"the server holds binlog.000003 to {end.file} (which ends at {end.offset})" in message
    assert "Load all tables again (tidemill resume FEED --resnapshot '*')" in message


def test_a_position_past_the_end(own: Client) -> None:
    own("CREATE TABLE t (id INT)")
    end = binlog_end(own.server)
    message = failure(own, resumed(own.server, f"{end.file}:{end.offset + 5000}"))
    assert "impossible position" in message
    assert f"(which ends at {end.offset})" in message


def test_a_position_between_no_events(own: Client) -> None:
    own("CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)")
    end = binlog_end(own.server)
    assert "can't read the binlog from" in failure(own, resumed(own.server, f"{end.file}:{end.offset - 7}"))


def test_a_position_within_a_transaction(own: Client) -> None:
    own("CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)")
    events = own("SHOW BINLOG EVENTS")
    inside = [row[4] for row in events if row[2] == "Gtid"][-1]
    message = failure(own, resumed(own.server, f"binlog.000001:{inside}"))
    assert message.startswith(f"binlog.000001:{inside} ")
    assert message.endswith(" is inside a transaction: start between two")


def test_a_checkpoint_of_another_server(own: Client) -> None:
    own("CREATE TABLE t (id INT)")
    message = failure(own, Checkpoint(1, str(binlog_end(own.server)), None, "mariadb server 4711"))
    assert (
        f"is mariadb server {own.server.server_id}, but the checkpoint is of mariadb server 4711" in message
    )


def test_a_binlog_that_was_reset_is_no_longer_what_the_checkpoint_is_of(own: Client) -> None:
    own("CREATE TABLE t (id INT)")
    own("INSERT INTO t VALUES (1)", "RESET MASTER", "INSERT INTO t VALUES (2)")
    events = own("SHOW BINLOG EVENTS")
    message = failure(own, resumed(own.server, f"binlog.000001:{events[-1][4]}", ts=compose_ts(1)))
    assert "the binlog was reset, or this is another server" in message


def test_a_checkpoint_with_a_snapshot_to_resume_behind_the_end(own: Client) -> None:
    own("CREATE TABLE t (id INT)")
    start = resumed(own.server, "binlog.000009:4711")
    message = failure(own, Checkpoint(start.ts, start.position, {}, start.source))
    assert "before the checkpoint's position binlog.000009:4711" in message


def test_statements_instead_of_rows(sql: Client) -> None:
    sql("CREATE TABLE t (id INT)")
    with Pulling(sql.server, f"{sql.database}.*", snapshot=False) as pulling:
        pulling.wait_until_told(Connected)
        sql("SET binlog_format = STATEMENT", "INSERT INTO t VALUES (1)")
        message = str(pulling.wait_for_error())
    assert (
        f"instead of the rows of {sql.database}.t, 'INSERT INTO t VALUES (1)': set binlog_format" in message
    )


def test_an_xa_transaction_that_was_prepared_before_the_start(sql: Client) -> None:
    sql("CREATE TABLE t (id INT)", "XA START 'x'", "INSERT INTO t VALUES (1)", "XA END 'x'", "XA PREPARE 'x'")
    with Pulling(
        sql.server, f"{sql.database}.*", start=resumed(sql.server, str(binlog_end(sql.server)))
    ) as pulling:
        pulling.wait_until_told(Connected)
        sql("XA COMMIT 'x'")
        message = str(pulling.wait_for_error())
    assert "XA COMMIT X'78',X'',1 of a transaction that was prepared before the feed's start" in message


def test_a_table_that_is_versioned_by_transactions_is_refused_at_the_start(sql: Client) -> None:
    sql(f"CREATE TABLE t {VERSIONED_BY_TRANSACTIONS}")
    assert f"{sql.database}.t is system-versioned by transactions" in failure(sql)
