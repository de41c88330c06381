"""Sessions of a source that do unusual things: the copy is exact, or the feed says why it can't be."""

from __future__ import annotations

import re
import shlex
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tidemill.dialects.mysql.client import connect, disconnect, query
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import PASSWORD, MariaDb


@pytest.fixture
def place(mariadb: MariaDb, database: str, tmp_path: Path) -> CopiedTable:
    """A feed whose snapshot is done."""
    place = CopiedTable(tmp_path, mariadb, database)
    place.continues()
    return place


def in_session(place: CopiedTable, *statements: str) -> None:
    place.execute(f"USE {place.schema}", *statements)


def goes_on(place: CopiedTable, sentence: str) -> None:
    """Give the command that an error names: the feed runs, and its copy is as the source is."""
    found = re.search(r"\(tidemill (resume FEED (?:--resnapshot \S+ ?)+)\)", sentence)
    assert found, sentence
    words = [str(place.config) if word == "FEED" else word for word in shlex.split(found[1])]
    with place.start_command(*words) as running:
        running.until(lambda status: not any(sink.loading for sink in status.sinks))
        running.wait_until(lambda: place.copied() == place.present())
        assert running.stop(signal.SIGTERM).status == 0
    place.execute(f"UPDATE {place.schema}.item SET name = 'later' WHERE id = 3")
    place.continues()


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_rows_that_a_session_logs_without_all_columns_are_refused(place: CopiedTable, image: str) -> None:
    in_session(place, "ALTER TABLE item ADD prose TEXT", "UPDATE item SET prose = name")
    place.continues()
    before = place.copied()
    in_session(
        place,
        f"SET binlog_row_image = {image}",
        "UPDATE item SET name = 'new' WHERE id = 1",
        "DELETE FROM item WHERE id = 2",
    )
    sentence = place.run().sentence
    assert "binlog_row_image = FULL" in sentence
    assert f"--resnapshot {place.schema}.item" in sentence
    assert place.copied() == before
    goes_on(place, sentence)


STATEMENTS = [
    "UPDATE item SET name = 'x'",
    "/* a */ DELETE FROM item WHERE id = 1",
    "REPLACE item VALUES (1, 'x')",
    "UPDATE item AS i JOIN kept AS k ON k.id = i.id SET i.name = 'x'",
    "UPDATE item SET name = f()",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_a_session_logs_in_place_of_rows_is_refused(
    place: CopiedTable, statement: str
) -> None:
    in_session(
        place,
        "CREATE TABLE kept (id INT PRIMARY KEY)",
        "INSERT INTO kept VALUES (1), (2)",
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 7",
    )
    place.continues()
    in_session(place, "SET binlog_format = STATEMENT", statement)
    sentence = place.run().sentence
    assert f"instead of the rows of {place.schema}.item" in sentence
    assert "set binlog_format = ROW" in sentence
    assert place.copied_ids() == [1, 2, 3]
    goes_on(place, sentence)


def test_a_statement_whose_tables_are_not_named_is_refused(place: CopiedTable) -> None:
    in_session(
        place,
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN UPDATE item SET name = 'x'; RETURN 7; END",
        "SET binlog_format = STATEMENT",
        "SELECT f()",
    )
    sentence = place.run().sentence
    assert "instead of the rows of tables that it doesn't name" in sentence
    assert "--resnapshot '*'" in sentence
    goes_on(place, sentence)


@pytest.mark.parametrize("session", ["binlog_format = STATEMENT", "binlog_row_image = MINIMAL"])
def test_tables_that_are_loaded_while_the_log_waits_are_loaded_again(
    place: CopiedTable, session: str
) -> None:
    place.configure(source="snapshot_workers = 0")
    in_session(place, f"SET {session}", "UPDATE item SET name = 'x'")
    goes_on(place, place.run().sentence)


def test_a_row_that_a_session_did_not_log_is_named_at_its_next_change(place: CopiedTable) -> None:
    in_session(place, "SET sql_log_bin = 0", "INSERT INTO item VALUES (4, 'unseen')")
    place.run()
    assert place.copied_ids() == [1, 2, 3]
    in_session(place, "UPDATE item SET name = 'seen' WHERE id = 4")
    assert f"update of {place.schema}.item (id=4): there is no such row" in place.run().sentence


def test_tables_without_transactions_keep_what_is_rolled_back(place: CopiedTable) -> None:
    place.execute(f"CREATE DATABASE {place.schema}_loose")
    try:
        in_session(
            place,
            f"CREATE TABLE {place.schema}_loose.m (id INT PRIMARY KEY) ENGINE = MyISAM",
            "BEGIN",
            "INSERT INTO item VALUES (4, 'stays')",
            "SAVEPOINT a",
            f"INSERT INTO {place.schema}_loose.m VALUES (1)",
            "INSERT INTO item VALUES (5, 'goes')",
            "ROLLBACK TO a",
            "INSERT INTO item VALUES (6, 'stays')",
            "COMMIT",
            "BEGIN",
            "UPDATE item SET name = 'goes'",
            f"INSERT INTO {place.schema}_loose.m VALUES (2)",
            "ROLLBACK",
        )
        place.continues()
    finally:
        place.execute(f"DROP DATABASE {place.schema}_loose")
    assert place.copied_ids() == [1, 2, 3, 4, 6]


def test_routines_triggers_and_events_count_by_the_rows_that_they_change(place: CopiedTable) -> None:
    in_session(
        place,
        "CREATE DEFINER = root@localhost PROCEDURE ALTER_TABLE_item() "
        "BEGIN INSERT INTO item VALUES (4, 'x'); DELETE FROM item WHERE id = 1; /* DROP TABLE item; */ END",
        "CREATE DEFINER = root@localhost FUNCTION f() RETURNS INT DETERMINISTIC "
        "BEGIN UPDATE item SET name = 'by a function' WHERE id = 2; RETURN 1; END",
        "CREATE DEFINER = root@localhost TRIGGER t BEFORE INSERT ON item FOR EACH ROW "
        "SET NEW.name = CONCAT(NEW.name, ' by a trigger')",
        "CREATE DEFINER = root@localhost EVENT e ON SCHEDULE AT '2037-01-01' DO TRUNCATE TABLE item",
        "CREATE DEFINER = root@localhost VIEW v AS SELECT * FROM item",
        "CALL ALTER_TABLE_item()",
        "SELECT f()",
        "DO f()",
        "INSERT INTO item VALUES (5, 'y')",
        "DROP PROCEDURE ALTER_TABLE_item",
        "DROP TRIGGER t",
        "DROP EVENT e",
        "DROP VIEW v",
    )
    place.continues()
    assert place.copied() == [
        (2, "by a function"),
        (3, "item 3"),
        (4, "x by a trigger"),
        (5, "y by a trigger"),
    ]


def test_temporary_tables_are_not_the_followed_ones_of_their_name(place: CopiedTable) -> None:
    in_session(
        place,
        "CREATE TEMPORARY TABLE item (id INT)",
        "INSERT INTO item VALUES (7)",
        "ALTER TABLE item ADD x INT",
        "TRUNCATE TABLE item",
        "DROP TEMPORARY TABLE item",
        "INSERT INTO item VALUES (4, 'followed')",
        "CREATE OR REPLACE TEMPORARY TABLE item SELECT 1 AS id",
    )
    in_session(
        place, "BEGIN", "CREATE TEMPORARY TABLE item (id INT)", "ROLLBACK", "DROP TEMPORARY TABLE item"
    )
    place.continues()
    assert place.copied_ids() == [1, 2, 3, 4]


def test_what_a_comment_has_the_server_execute_is_followed(place: CopiedTable) -> None:
    in_session(
        place,
        "/*!50000 INSERT INTO item VALUES (4, 'four') */",
        "/*M!100000 ALTER TABLE item ADD x INT DEFAULT 5 */",
        "ALTER /*!50000 TABLE item */ ADD y INT DEFAULT 6 /*!99999999 , DROP name */",
        "UPDATE item SET x = 7 WHERE id = 2",
    )
    place.continues()


def test_rows_of_a_backlog_are_read_by_the_definition_they_were_written_with(place: CopiedTable) -> None:
    in_session(
        place,
        "INSERT INTO item VALUES (4, 'four')",
        "ALTER TABLE item ADD COLUMN n INT DEFAULT 5 FIRST",
        "INSERT INTO item (id, name, n) VALUES (5, 'five', 55)",
        "ALTER TABLE item DROP COLUMN name",
        "UPDATE item SET n = n + 1",
        "ALTER TABLE item ADD COLUMN name VARCHAR(9) DEFAULT 'again' AFTER id",
        "UPDATE item SET name = 'new' WHERE id > 3",
        "DELETE FROM item WHERE id = 2",
    )
    done = place.run()
    assert done.status == 0, done
    with closing(sqlite3.connect(place.copy)) as copy:
        copied = copy.execute(f'SELECT id, name, n FROM "{place.schema}.item" ORDER BY id').fetchall()
    assert copied == place.execute(f"SELECT id, name, n FROM {place.schema}.item ORDER BY id")


def test_table_ids_may_change_at_any_time(place: CopiedTable) -> None:
    for number in range(4, 10):
        in_session(
            place,
            f"INSERT INTO item VALUES ({number}, 'x')",
            "FLUSH TABLES",
            "BEGIN",
            f"UPDATE item SET name = 'y' WHERE id = {number}",
            f"DELETE FROM item WHERE id = {number - 3}",
            "COMMIT",
            "FLUSH BINARY LOGS",
        )
    place.continues()


def test_lost_events_are_said_to_be_lost(tmp_path: Path, private_mariadb: MariaDb) -> None:
    private_mariadb.options = ("--binlog-stmt-cache-size=4096", "--max-binlog-stmt-cache-size=4096")
    server = private_mariadb.start()
    server.execute("CREATE DATABASE shop")
    place = CopiedTable(tmp_path, server, "shop")
    in_session(place, "ALTER TABLE item ENGINE = MyISAM, MODIFY name TEXT")
    place.continues()
    with pytest.raises(Exception, match="max_binlog_stmt_cache_size"):
        in_session(place, "INSERT INTO item SELECT seq, REPEAT('x', 1000) FROM seq_10_to_100")
    sentence = place.run().sentence
    assert "the server says that it lost events (" in sentence
    assert sentence.endswith("): start again with a new snapshot")


def test_a_reader_that_waits_a_day_is_not_cut_off(private_mariadb: MariaDb) -> None:
    private_mariadb.options = ("--net-write-timeout=1", "--wait-timeout=1")
    session = connect(MysqlOptions(port=private_mariadb.start().port, password=PASSWORD))
    assert query(session, "SELECT @@net_write_timeout, @@wait_timeout") == [(86400, 86400)]
    disconnect(session)
