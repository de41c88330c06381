"""Following a live MariaDB's binlog, whatever happens to the connection and the server."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.codec.mysql.entry import COMMIT, RESULT_ROWS, ROLLBACK_MARKER, decode_commit
from tidemill.events import Checkpoint, Chunk, Ddl, Transaction, compose_ts, physical_ms
from tidemill.puller.puller import Connected, Retrying, SnapshotReport
from tidemill.testing.mariadb_client import Client

from .pulling import Copy, Pulling, binlog_end, rows_of, source_rows


def follow(sql: Client, *copies: Copy, **options: Any) -> Pulling:
    return Pulling(sql.server, f"{sql.database}.*", copies=copies, **options)


def transactions(pulling: Pulling) -> list[list[tuple[str, Any, Any]]]:
    """The row changes of each transaction that has some."""
    return [
        [(row.op, row.before, row.after) for row in item.rows]
        for item in pulling.items
        if isinstance(item, Transaction) and item.rows
    ]


# --- the stop ------------------------------------------------------------------------------------


def test_a_stop_does_not_wait_for_the_server(sql: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.puller.mysql.pull.MOST_POLL_SECONDS", 3600.0)
    sql("CREATE TABLE t (id INT PRIMARY KEY)")
    with follow(sql, snapshot=False, heartbeat_seconds=3600.0) as pulling:
        pulling.wait_until_told(Connected)
        sql("INSERT INTO t VALUES (1)")
        pulling.wait_for(lambda: transactions(pulling))
    assert pulling.count(Retrying) == 0


# --- transactions --------------------------------------------------------------------------------


def test_transactions_keep_their_boundaries_and_their_rows_order(sql: Client) -> None:
    sql("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "CREATE TABLE m (id INT) ENGINE = MyISAM")
    with follow(sql, snapshot=False) as pulling:
        pulling.wait_until_told(Connected)
        sql("INSERT INTO t VALUES (1, 1), (2, 2)")
        sql("BEGIN", "UPDATE t SET a = 5 WHERE id = 2", "DELETE FROM t WHERE id = 1", "COMMIT")
        sql("BEGIN", "INSERT INTO t VALUES (3, 3)", "ROLLBACK")
        sql("BEGIN", "INSERT INTO t VALUES (4, 4)", "SAVEPOINT a", "DELETE FROM t", "ROLLBACK TO a", "COMMIT")
        sql("INSERT INTO m VALUES (7)")
        pulling.wait_for(lambda: len(transactions(pulling)) == 4)
    assert transactions(pulling) == [
        [("insert", None, (1, 1)), ("insert", None, (2, 2))],
        [("update", (2, 2), (2, 5)), ("delete", (1, 1), None)],
        [("insert", None, (4, 4))],
        [("insert", None, (7,))],
    ]


def test_rollbacks_that_are_logged_leave_no_rows(sql: Client) -> None:
    sql("CREATE TABLE t (id INT PRIMARY KEY)")
    temporary = "CREATE TEMPORARY TABLE {} (a INT)"
    with follow(sql, snapshot=False) as pulling:
        pulling.wait_until_told(Connected)
        sql("BEGIN", temporary.format("x"), "INSERT INTO t VALUES (1)", "ROLLBACK")
        sql("BEGIN", "INSERT INTO t VALUES (2)", "SAVEPOINT a", temporary.format("y"))
        sql("INSERT INTO t VALUES (3)", "ROLLBACK TO a", "COMMIT")
        pulling.wait_for(lambda: transactions(pulling))
    assert transactions(pulling) == [[("insert", None, (2,))]]


def test_a_table_made_from_a_select_comes_with_its_rows(sql: Client) -> None:
    sql("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    with follow(sql, snapshot=False) as pulling:
        pulling.wait_until_told(Connected)
        sql("CREATE TABLE u AS SELECT * FROM t")
        pulling.wait_for(lambda: transactions(pulling))
    ddl, rows = pulling.items[-2:]
    assert isinstance(ddl, Ddl)
    assert isinstance(rows, Transaction)
    assert ddl.query.startswith("CREATE TABLE `u`")
    assert (ddl.commit_ts, ddl.last) == (rows.commit_ts, False)
    assert [row.after for row in rows.rows] == [(1,), (2,)]


def test_rows_of_other_tables_and_of_sequences_only_move_the_position(sql: Client) -> None:
    sql("CREATE TABLE t (id INT)", "CREATE TABLE tmp_x (id INT)")
    with Pulling(sql.server, f"{sql.database}.*", f"!{sql.database}.tmp_*", snapshot=False) as pulling:
        pulling.wait_until_told(Connected)
        sql("INSERT INTO tmp_x VALUES (1)", "CREATE SEQUENCE s", "SELECT NEXTVAL(s)")
        end = str(binlog_end(sql.server))
        pulling.wait_for(lambda: pulling.items and pulling.items[-1].position.startswith(f"{end} "))
    assert transactions(pulling) == []
    assert pulling.puller.actor_inbox.failures == 0


def test_compressed_events_and_events_without_checksum_are_read(own: Client) -> None:
    own("CREATE TABLE t (id INT PRIMARY KEY, note TEXT)")
    own("SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10")
    copy = Copy()
    with follow(own, copy) as pulling:
        pulling.catch_up(binlog_end(own.server))
        for statement in (
            f"INSERT INTO t VALUES (1, '{'a' * 500}'), (2, '{'b' * 500}')",
            f"UPDATE t SET note = '{'c' * 9000}'",
            "DELETE FROM t WHERE id = 1",
            f"ALTER TABLE t ADD COLUMN a_column_with_a_long_name INT COMMENT '{'d' * 300}'",
            "INSERT INTO t VALUES (3, REPEAT('e', 300), 4)",
        ):
            own(statement)
        own("SET GLOBAL binlog_checksum = NONE", "INSERT INTO t VALUES (4, 'plain', 5)")
        pulling.catch_up(binlog_end(own.server))
    assert rows_of(copy) == source_rows(own.server, "shop")
    own("INSERT INTO t VALUES (5, 'more', 6)", "SET GLOBAL binlog_checksum = CRC32")
    own("INSERT INTO t VALUES (6, 'checked again', 7)")
    copy.restart()
    with follow(own, copy) as pulling:
        pulling.catch_up(binlog_end(own.server))
    assert rows_of(copy) == source_rows(own.server, "shop")


def test_a_row_of_more_than_16_mib_is_read_from_snapshot_and_binlog(own: Client) -> None:
    own("CREATE TABLE t (id INT PRIMARY KEY, data LONGBLOB)")
    own("INSERT INTO t VALUES (1, REPEAT('x', 17 << 20)), (2, 'short')")
    copy = Copy()
    with follow(own, copy) as pulling:
        pulling.catch_up(binlog_end(own.server))
        own("UPDATE t SET data = CONCAT(data, 'y') WHERE id = 1")
        pulling.catch_up(binlog_end(own.server))
    (rows,) = rows_of(copy).values()
    assert rows == {(1, b"x" * (17 << 20) + b"y"): 1, (2, b"short"): 1}


# --- time ----------------------------------------------------------------------------------------


def test_an_idle_source_moves_the_resolved_ts(sql: Client) -> None:
    sql("CREATE TABLE t (id INT)")
    with follow(sql, snapshot=False, heartbeat_seconds=0.05) as pulling:
        pulling.wait_until_told(Connected)
        pulling.wait_for(lambda: pulling.resolved)
        first = pulling.resolved
        pulling.wait_for(lambda: pulling.resolved > first)
        end = str(binlog_end(sql.server))
    last = pulling.batches[-1].changes[-1]
    assert last.key[8] == COMMIT
    assert decode_commit(last.value).position.startswith(f"{end} ")
    assert physical_ms(pulling.resolved) > physical_ms(first)


def test_a_start_without_snapshot_begins_at_the_end_and_says_so_at_once(sql: Client) -> None:
    sql("CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)")
    end = binlog_end(sql.server)
    with follow(sql, snapshot=False) as pulling:
        pulling.wait_for(lambda: pulling.items)
        sql("INSERT INTO t VALUES (2)")
        pulling.wait_for(lambda: transactions(pulling))
    assert pulling.items[0].position.partition(" ")[0] == str(end)
    assert transactions(pulling) == [[("insert", None, (2,))]]
    with follow(sql, position=str(end)) as again:
        again.wait_for(lambda: transactions(again))
    assert transactions(again) == transactions(pulling)


def test_what_follows_a_given_position_has_the_time_at_which_it_was_written(own: Client) -> None:
    an_hour_ago = own("SELECT UNIX_TIMESTAMP() - 3600")[0][0]
    own("CREATE TABLE t (id INT)", f"SET timestamp = {an_hour_ago}", "FLUSH BINARY LOGS")
    start = str(binlog_end(own.server))
    own(f"SET timestamp = {an_hour_ago + 60}", "INSERT INTO t VALUES (1)")
    own(f"SET timestamp = {an_hour_ago + 1800}", "INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (3)")
    with follow(own, position=start) as pulling:
        pulling.wait_for(lambda: len(transactions(pulling)) == 3)
    made = [item for item in pulling.items if isinstance(item, Transaction) and item.rows]
    first, second = (compose_ts((an_hour_ago + seconds) * 1000) for seconds in (60, 1800))
    assert [item.commit_ts for item in made] == [first, second, second + 1]
    with follow(own, start=Checkpoint(first, made[0].position), position=start) as restarted:
        restarted.wait_for(lambda: len(transactions(restarted)) == 2)
    again = [item for item in restarted.items if isinstance(item, Transaction) and item.rows]
    assert [item.commit_ts for item in again] == [second, second + 1]


def test_new_files_are_followed(sql: Client) -> None:
    sql("CREATE TABLE t (id INT PRIMARY KEY)")
    copy = Copy()
    with follow(sql, copy) as pulling:
        for number in range(4):
            sql(f"INSERT INTO t VALUES ({number})", "FLUSH BINARY LOGS")
        pulling.catch_up(binlog_end(sql.server))
    assert rows_of(copy) == source_rows(sql.server, sql.database)
    assert not any(isinstance(message, Retrying) for message in pulling.messages)


def test_statistics_count_what_was_read(sql: Client) -> None:
    sql("CREATE TABLE t (id INT)")
    with follow(sql, snapshot=False) as pulling:
        pulling.wait_until_told(Connected)
        sql("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
        pulling.wait_for(lambda: pulling.statistics is not None and pulling.statistics.transactions == 2)
        found = pulling.statistics
        end = binlog_end(sql.server)
    assert found is not None
    assert found.state == "following"
    assert (found.row_events, found.transactions, found.retries) == (2, 2, 0)
    assert found.position.startswith(str(end))
    assert found.events >= 8
    assert found.bytes > 400
    assert 0 < found.ingress_ts <= found.resolved_ts


# --- lost connections ----------------------------------------------------------------------------


def kill_dumps(sql: Client, command: str = "Binlog Dump") -> None:
    for row in sql("SHOW PROCESSLIST"):
        if row[4] == command:
            sql(f"KILL {row[0]}")


def test_a_killed_connection_is_made_again_where_it_was(sql: Client) -> None:
    sql("CREATE TABLE t (id INT PRIMARY KEY)")
    copy = Copy()
    with follow(sql, copy) as pulling:
        pulling.catch_up(binlog_end(sql.server))
        for number in range(5):
            sql(f"INSERT INTO t VALUES ({number})")
            kill_dumps(sql)
            sql(f"INSERT INTO t VALUES ({number + 100})")
            pulling.catch_up(binlog_end(sql.server))
    assert rows_of(copy) == source_rows(sql.server, sql.database)
    assert any(isinstance(message, Retrying) for message in pulling.messages)


def test_a_connection_lost_within_a_large_transaction_repeats_nothing(sql: Client) -> None:
    sql("CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(1000))")
    copy = Copy()
    with follow(sql, copy, max_batch_bytes=50_000) as pulling:
        pulling.catch_up(binlog_end(sql.server))
        ts = pulling.resolved

        def parts() -> int:
            return sum(batch.changes[-1].commit_ts > ts for batch in pulling.batches)

        sql("INSERT INTO t SELECT seq, REPEAT('x', 900) FROM seq_1_to_30000")
        for _ in range(2):
            wanted = parts() + 3
            pulling.hold_once(lambda wanted=wanted: parts() >= wanted)
            retries = pulling.count(Retrying)
            kill_dumps(sql)
            pulling.release()
            pulling.wait_until_told(Retrying, retries + 1)
        pulling.catch_up(binlog_end(sql.server))
    assert rows_of(copy) == source_rows(sql.server, sql.database)
    assert parts() > 20


def test_a_server_that_is_killed_and_started_again_is_followed_on(own: Client) -> None:
    own("CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(1000))")
    copy = Copy()
    with follow(own, copy, retry_longest_seconds=0.3) as pulling:
        for number in range(3):
            own(f"INSERT INTO t VALUES ({number}, 'before')")
            if number != 1:
                pulling.catch_up(binlog_end(own.server))
            retries = pulling.count(Retrying)
            own.server.kill() if number else own.server.stop()
            pulling.wait_until_told(Retrying, retries + 1)
            own.server.start()
            own.reconnect()
            own(f"INSERT INTO t VALUES ({number + 100}, 'after')")
            pulling.catch_up(binlog_end(own.server))
    assert rows_of(copy) == source_rows(own.server, "shop")
    assert pulling.statistics is not None
    assert pulling.statistics.retries >= 3


def test_a_server_that_falls_silent_is_connected_to_again(own: Client) -> None:
    own("CREATE TABLE t (id INT PRIMARY KEY)")
    with follow(own, snapshot=False, heartbeat_seconds=0.1, retry_first_seconds=0.05) as pulling:
        pulling.wait_until_told(Connected)
        own.server.pause()
        pulling.wait_until_told(Retrying)
        own.server.resume()
        own("INSERT INTO t VALUES (1)")
        pulling.wait_for(lambda: transactions(pulling) == [[("insert", None, (1,))]])
    (retrying, *_) = [message for message in pulling.messages if isinstance(message, Retrying)]
    assert "silent for" in retrying.error


def kill_queries(sql: Client) -> None:
    """The connections that run a statement, other than this one."""
    for row in sql("SHOW PROCESSLIST"):
        if row[4] in ("Query", "Execute") and not row[7].startswith("SHOW"):
            sql(f"KILL {row[0]}")


def test_a_connection_lost_while_a_table_without_key_is_loaded(sql: Client) -> None:
    sql("CREATE TABLE loose (n INT, note VARCHAR(1000))")
    sql("INSERT INTO loose SELECT seq, REPEAT('x', 900) FROM seq_1_to_30000")
    copy = Copy()
    pulling = follow(sql, copy, max_batch_bytes=50_000)
    pulling.hold_at(lambda: is_reading_rows(pulling))
    with pulling:
        for attempt in (1, 2):
            pulling.wait_until_held()
            kill_queries(sql)
            sql("UPDATE loose SET n = n + 1 LIMIT 10")
            if attempt == 1:
                pulling.hold_at(
                    lambda: kinds(pulling).count(ROLLBACK_MARKER) == 1 and is_reading_rows(pulling)
                )
            pulling.release()
            pulling.wait_until_told(Retrying, attempt)
        pulling.catch_up(binlog_end(sql.server))
    assert kinds(pulling).count(ROLLBACK_MARKER) == 2
    assert rows_of(copy) == source_rows(sql.server, sql.database)


def test_a_load_waits_for_room_for_prepared_statements(own: Client) -> None:
    own("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)")
    own("SET GLOBAL max_prepared_stmt_count = 0")
    copy = Copy()
    pulling = follow(own, copy, retry_longest_seconds=0.3)
    with pulling:
        pulling.wait_until_told(Retrying, 2)
        own("SET GLOBAL max_prepared_stmt_count = 1")
        own("INSERT INTO a VALUES (3)")
        pulling.catch_up(binlog_end(own.server))
    assert rows_of(copy) == source_rows(own.server, "shop")


def test_a_server_killed_while_a_table_without_key_is_loaded(own: Client) -> None:
    own("CREATE TABLE loose (n INT, note VARCHAR(1000))", "CREATE TABLE a (id INT PRIMARY KEY)")
    own("INSERT INTO loose SELECT seq, REPEAT('x', 900) FROM seq_1_to_30000", "INSERT INTO a VALUES (1), (2)")
    copy = Copy()
    pulling = follow(own, copy, max_batch_bytes=50_000, retry_longest_seconds=0.3)
    pulling.hold_at(lambda: is_reading_rows(pulling))
    with pulling:
        pulling.wait_until_held()
        own.server.kill()
        own.server.start()
        own.reconnect()
        own("INSERT INTO loose VALUES (0, 'meanwhile')", "DELETE FROM a")
        pulling.release()
        pulling.catch_up(binlog_end(own.server))
    assert ROLLBACK_MARKER in kinds(pulling)
    assert rows_of(copy) == source_rows(own.server, "shop")


def kinds(pulling: Pulling) -> list[int]:
    return [change.key[8] for batch in pulling.batches for change in batch.changes]


def is_reading_rows(pulling: Pulling) -> bool:
    """Return True if the last change is rows of a snapshot."""
    last = pulling.batches[-1].changes if pulling.batches else None
    return bool(last) and last[-1].key[8] == RESULT_ROWS


def chunks(pulling: Pulling) -> list[Chunk]:
    """Return the chunks that the snapshot has loaded so far."""
    return [item.chunk for item in pulling.items if isinstance(item, Transaction) and item.chunk]


def test_a_server_that_is_down_at_the_start_is_waited_for(own: Client) -> None:
    own("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    own.server.kill()
    copy = Copy()
    with follow(own, copy, retry_first_seconds=0.05, retry_longest_seconds=0.3) as pulling:
        pulling.wait_until_told(Retrying, 3)
        assert [message.seconds for message in pulling.messages[:3]] == [0.05, 0.1, 0.2]
        assert "Can't connect" in pulling.messages[0].error
        own.server.start()
        own.reconnect()
        pulling.catch_up(binlog_end(own.server))
    assert rows_of(copy) == {"shop.t": {(1,): 1}}


# --- DDL during the snapshot ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "ddl",
    [
        "ALTER TABLE b ADD COLUMN c INT, ALGORITHM = INSTANT",
        "ALTER TABLE b ADD COLUMN c INT, ALGORITHM = COPY",
        "DROP TABLE b",
    ],
)
def test_a_table_altered_before_its_turn_makes_a_new_snapshot(sql: Client, ddl: str) -> None:
    sql("CREATE TABLE a (id INT PRIMARY KEY, note VARCHAR(1000))", "CREATE TABLE b (id INT PRIMARY KEY)")
    sql("INSERT INTO a SELECT seq, REPEAT('x', 900) FROM seq_1_to_20000", "INSERT INTO b VALUES (1)")
    copy = Copy()
    pulling = follow(sql, copy, snapshot_workers=0, chunk_rows=1000)
    pulling.hold_at(lambda: pulling.count(SnapshotReport))
    with pulling:
        pulling.wait_until_held()
        sql("SET lock_wait_timeout = 60", ddl)
        pulling.release()
        pulling.catch_up(binlog_end(sql.server))
    assert any(isinstance(message, Retrying) for message in pulling.messages)
    assert rows_of(copy) == source_rows(sql.server, sql.database)


def test_a_loaded_table_can_be_altered_while_the_next_one_is_loaded(sql: Client) -> None:
    sql("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY, note VARCHAR(1000))")
    sql("INSERT INTO b SELECT seq, REPEAT('x', 900) FROM seq_1_to_20000", "INSERT INTO a VALUES (1)")
    copy = Copy()
    pulling = follow(sql, copy, snapshot_workers=0, chunk_rows=1000)
    pulling.hold_at(lambda: Chunk(f"{sql.database}.a") in chunks(pulling))
    with pulling:
        pulling.wait_until_held()
        sql("SET lock_wait_timeout = 60", "ALTER TABLE a ADD COLUMN c INT", "INSERT INTO a VALUES (2, 2)")
        pulling.release()
        pulling.catch_up(binlog_end(sql.server))
    assert not any(isinstance(message, Retrying) for message in pulling.messages)
    assert rows_of(copy) == source_rows(sql.server, sql.database)
