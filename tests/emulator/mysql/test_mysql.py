"""Feeds of the emulated MariaDB: its faults, its positions, and what it refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest

from tidemill.emulator import Mysql
from tidemill.testing import LiveFeed

Start = Callable[..., LiveFeed]
QUICK = {"heartbeat_seconds": 0.05, "retry_first_seconds": 0.01, "retry_longest_seconds": 0.05}


@pytest.fixture
def mysql(tidemill_mysql: Mysql) -> Mysql:
    tidemill_mysql.execute("create database shop")
    tidemill_mysql.execute("create table shop.item (id int primary key, name varchar(2000))")
    insert(tidemill_mysql, 1, 2)
    return tidemill_mysql


def insert(mysql: Mysql, *ids: int, name: str = "new") -> None:
    with mysql.transaction() as txn:
        for number in ids:
            txn.insert("shop.item", {"id": number, "name": name})


def ids(feed: LiveFeed) -> list[int]:
    return [row.after_dict()["id"] for row in feed.rows]


def following(mysql: Mysql, start: Start, **options: object) -> LiveFeed:
    """Return a feed that has the rows 1 and 2, and gets the log."""
    feed = start(mysql, ["shop.*"], source_options=QUICK | options)
    feed.caught_up()
    feed.until(lambda: mysql.followers)
    assert ids(feed) == [1, 2]
    return feed


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_connection_that_breaks_inside_a_packet(mysql: Mysql, tidemill_feed: Start, is_idle: bool) -> None:
    feed = following(mysql, tidemill_feed)
    if not is_idle:
        insert(mysql, 3)
    mysql.cut()
    insert(mysql, 4)
    feed.caught_up()
    assert ids(feed) == [1, 2, 4] if is_idle else [1, 2, 3, 4]
    assert feed.status().received.reconnects >= 1


def test_a_server_that_hangs_and_comes_back(mysql: Mysql, tidemill_feed: Start) -> None:
    feed = following(mysql, tidemill_feed, timeout_seconds=1)
    with mysql.silence():
        insert(mysql, 3)
        feed.until(lambda: feed.status().state == "warning")
        assert ids(feed) == [1, 2]
    feed.until(lambda: ids(feed) == [1, 2, 3])


def test_a_server_that_is_down(mysql: Mysql, tidemill_feed: Start) -> None:
    feed = following(mysql, tidemill_feed)
    with mysql.down():
        insert(mysql, 3)
        feed.until(lambda: feed.status().state == "warning")
    feed.until(lambda: ids(feed) == [1, 2, 3])


def test_a_slow_server_sends_all(mysql: Mysql, tidemill_feed: Start) -> None:
    feed = following(mysql, tidemill_feed)
    with mysql.slow(bytes_per_second=20_000):
        insert(mysql, *range(3, 13), name="x" * 200)
        feed.until(lambda: ids(feed) == [*range(1, 13)])


def test_a_restart_reads_the_next_file(mysql: Mysql, tidemill_feed: Start) -> None:
    feed = following(mysql, tidemill_feed)
    feed.stop()
    insert(mysql, 3)
    mysql.rotate()
    mysql.rotate()
    insert(mysql, 4)
    feed.restart()
    feed.caught_up()
    assert ids(feed) == [1, 2, 3, 4]
    assert mysql.position.startswith("binlog.000003:")


def test_a_feed_begins_after_a_gtid(mysql: Mysql, tidemill_feed: Start) -> None:
    after = mysql.gtid
    mysql.rotate()
    insert(mysql, 3)
    feed = tidemill_feed(mysql, ["shop.*"], source_options=QUICK | {"position": after})
    feed.caught_up()
    assert ids(feed) == [3]
    mysql.cut()
    insert(mysql, 4)
    feed.caught_up()
    assert ids(feed) == [3, 4]
    assert f"gtid={mysql.gtid} " in feed.status().sinks[0].position


def test_what_was_purged_is_an_error(mysql: Mysql, tidemill_feed: Start) -> None:
    feed = following(mysql, tidemill_feed)
    feed.stop()
    insert(mysql, 3)
    mysql.rotate()
    mysql.purge()
    feed.restart()
    assert "the server holds binlog.000002 to binlog.000002" in str(feed.failure())


def test_rows_are_loaded_while_others_change(mysql: Mysql, tidemill_feed: Start) -> None:
    insert(mysql, *range(3, 400))
    feed = tidemill_feed(mysql, ["shop.*"], source_options=QUICK | {"chunk_rows": 7})
    for number in range(400, 420):
        insert(mysql, number)
    feed.caught_up()
    assert sorted(ids(feed)) == [*range(1, 420)]


def test_a_wrong_password_is_refused(mysql: Mysql, tmp_path: Path) -> None:
    url = mysql.url.replace("tidemill@", "guess@")
    with LiveFeed(url, ["shop.*"], data_dir=tmp_path) as feed:
        assert "Access denied for user 'root'@'127.0.0.1'" in str(feed.failure())


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT name FROM shop.item GROUP BY name", "GROUP"),
        ("SELECT upper(name) FROM shop.item", "the column upper"),
        ("SHOW PROCESSLIST", "SHOW PROCESSLIST"),
        ("SELECT @@innodb_page_size", "Unknown system variable 'innodb_page_size'"),
        ("SET GLOBAL x = 1", "the emulated server has no setting GLOBAL"),
        ("INSERT INTO shop.item VALUES (1, 'a')", "INSERT INTO shop.item VALUES"),
        ("SELECT * FROM shop.nothing", "Table 'shop.nothing' doesn't exist"),
        ("SELECT id FROM information_schema.EVENTS", "information_schema.EVENTS"),
    ],
)
def test_an_unknown_statement_is_an_error_that_names_it(mysql: Mysql, sql: str, named: str) -> None:
    with (
        pymysql.connect(host="127.0.0.1", port=mysql.port, user="root", password="tidemill") as connection,
        connection.cursor() as cursor,
    ):
        with pytest.raises(pymysql.err.Error, match=named):
            cursor.execute(sql)
        cursor.execute("SELECT id FROM shop.item WHERE id > 1")  # the session goes on
        assert cursor.fetchall() == ((2,),)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("insert into shop.item values (3, 'c')", "rows are changed in a transaction"),
        ("create table shop.item (id int)", "there is a table shop.item already"),
        ("create table nowhere.item (id int)", "there is no database nowhere"),
        ("alter table shop.other add x int", "there is no table shop.other"),
        ("drop table shop.other", "there is no such table"),
        ("rename table shop.item to nowhere.item", "no table can become nowhere.item"),
        ("alter table shop.item modify name int", "column name takes integers"),
        ("alter table shop.item add v varchar(9) as (upper(name))", "doesn't know exactly"),
        ("alter table shop.item add p int, add foreign key (p) references shop.item (id)", "foreign keys"),
        ("alter table shop.item add v int default (rand())", "doesn't know exactly"),
        ("make table x", "the emulator doesn't know this statement"),
    ],
)
def test_a_statement_without_a_known_effect_is_refused(mysql: Mysql, statement: str, problem: str) -> None:
    before = mysql.rows("shop.item"), mysql.position
    with pytest.raises(ValueError, match=problem):
        mysql.execute(statement)
    assert (mysql.rows("shop.item"), mysql.position) == before
    mysql.execute("alter table shop.item add fine int default 7")
    assert mysql.rows("shop.item") == [(1, "new", 7), (2, "new", 7)]


def test_a_transaction_is_all_or_nothing(mysql: Mysql) -> None:
    before = mysql.position

    def fails(values: dict[str, object], problem: str) -> None:
        with pytest.raises(ValueError, match=problem):
            _insert_two(mysql, values)

    fails({"id": 1}, "already has a row 1")
    fails({"id": 3}, "already has a row 3")
    fails({"id": 4, "nome": "x"}, "has no column nome; it has id, name")
    fails({"id": "one"}, "column id takes integers from")
    assert (len(mysql.rows("shop.item")), mysql.position) == (2, before)


def _insert_two(mysql: Mysql, values: dict[str, object]) -> None:
    with mysql.transaction() as txn:
        txn.insert("shop.item", {"id": 3})
        txn.insert("shop.item", values)


def test_of_two_transactions_of_one_row_the_second_is_refused(mysql: Mysql) -> None:
    first, second = mysql.transaction(), mysql.transaction()
    first.update("shop.item", 1, {"name": "first"})
    second.update("shop.item", 1, {"name": "second"})
    assert second.get("shop.item", 1) == (1, "second")
    first.commit()
    with pytest.raises(ValueError, match="another transaction changed a row"):
        second.commit()
    assert mysql.rows("shop.item")[0] == (1, "first")


def test_closing_leaves_no_thread_and_frees_the_port() -> None:
    with Mysql() as mysql:
        port = mysql.port
        connection = pymysql.connect(host="127.0.0.1", port=port, user="root", password="tidemill")
    with pytest.raises(pymysql.err.OperationalError):
        connection.ping(reconnect=False)
    with pytest.raises(pymysql.err.OperationalError, match="refused"):
        pymysql.connect(host="127.0.0.1", port=port, user="root", password="tidemill")
    mysql.close()
    assert not any(thread.name == "emulated mysql" for thread in threading.enumerate())
