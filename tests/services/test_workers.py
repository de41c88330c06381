"""Transactions that several connections apply in parallel, into a real MariaDB, MySQL and PostgreSQL."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing, contextmanager, suppress
from random import Random
from threading import Event, Thread

import pytest
from pymysql.err import OperationalError

from tidemill.config import checked
from tidemill.dialects.address import parsed
from tidemill.dialects.mysql.mysql import MySqlDatabase
from tidemill.dialects.options import MySqlOptions, PostgresOptions
from tidemill.dialects.statement import Statement
from tidemill.errors import ConfigError, Retryable, SinkError
from tidemill.events import RowChange, Transaction
from tidemill.sink import Delivery, DeliveryOptions
from tidemill.testing import conflicts
from tidemill.testing.changes import LOOSE, ORDERS, delete, insert, transaction, update
from tidemill.testing.child import Child
from tidemill.testing.conflicts import (
    ACCOUNTS,
    BALANCE,
    COPY,
    COUNTED,
    ITEMS,
    POSTGRES_COPY,
    POSTGRES_COUNTED,
    TABLES,
    Conflicts,
    deliver,
    postgres_trigger,
    triggers,
)
from tidemill.testing.progress import eventually
from tidemill.testing.sink_conformance import feed

from ..dialects.places import MariaDbPlace, PostgresPlace
from ..sink.sql_conformance import loaded
from .test_sink_mariadb import place_of

SEEDS = range(3)
POINTS = ("sink.mid_batch", "sink.before_commit", "sink.committed")


@pytest.fixture
def on_mariadb(mariadb, database):
    return MariaDbPlace(mariadb, database)


@pytest.fixture
def on_postgres(postgresql, postgres_database):
    return PostgresPlace(postgresql, postgres_database)


@pytest.fixture(params=["mariadb", "mysql", "postgresql"])
def place(request):
    return request.getfixturevalue("on_postgres") if request.param == "postgresql" else place_of(request)


@pytest.fixture(params=["mariadb", "postgresql"])
def one_place(request):
    """A place on one server of each protocol."""
    return request.getfixturevalue("on_postgres") if request.param == "postgresql" else place_of(request)


@pytest.fixture(params=["mariadb", "postgresql"])
def private_place(request):
    """A place on a server that is the test's own."""
    if request.param == "postgresql":
        return PostgresPlace(request.getfixturevalue("private_postgresql").start(), "postgres")
    server = request.getfixturevalue("private_mariadb").start()
    server.execute("CREATE DATABASE shop")
    return MariaDbPlace(server, "shop")


def prepared(place, *, counting=False):
    """Create the copies that have unique keys and a foreign key."""
    counted = ("items", "lines", "notes")
    if isinstance(place, PostgresPlace):
        statements = [*POSTGRES_COPY]
        if counting:
            statements += [*POSTGRES_COUNTED, *map(postgres_trigger, counted)]
    else:
        statements = [*COPY]
        if counting:
            statements += [COUNTED, *(one for table in counted for one in triggers(table))]
    for statement in statements:
        place.query(statement)


def stored_ts(place):
    schema = "tidemill." if isinstance(place, PostgresPlace) else ""
    return place.query(f"SELECT ts FROM {schema}tidemill_checkpoint")


@contextmanager
def transaction_of_another(place):
    """Yield the connection of another session, in a transaction; it is rolled back."""
    if isinstance(place, PostgresPlace):
        with place.server.connect(dbname=place.database, autocommit=False) as connection:
            connection.execute("SET search_path = shop; SET deadlock_timeout = '1min'")
            yield connection
            connection.rollback()
        return
    with place.server.connect(database=place.database) as connection, connection.cursor() as cursor:
        cursor.execute("START TRANSACTION")
        yield cursor


def kill_sessions(place):
    """End the connections of all workers."""
    if isinstance(place, PostgresPlace):
        place.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tidemill'"
        )
        return
    own = "SELECT id FROM information_schema.processlist WHERE db IS NULL AND id <> CONNECTION_ID()"
    for (connection,) in place.query(own):
        with suppress(OperationalError):
            place.query(f"KILL {connection}")


def assert_copied(place, history):
    for table in TABLES:
        assert Counter(place.rows(table)) == history.rows(table), table.name


def assert_counted(place, history):
    counted = Counter(place.query("SELECT tbl, op FROM counted"))
    assert counted == Counter({key: n for key, n in history.counts.items() if key[0] != "accounts"})


@pytest.mark.parametrize("workers", [1, 4, 16])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_final_rows_are_those_of_the_commit_order(place, seed, workers):
    prepared(place)
    history = Conflicts(seed, 400)
    deliver(place.sink(workers=workers), history.items, seed)
    assert_copied(place, history)
    assert stored_ts(place) == [(history.items[-1].commit_ts,)]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 150))
def test_the_final_rows_of_many_histories_are_those_of_the_commit_order(one_place, seed):
    prepared(one_place)
    history = Conflicts(seed, 1000)
    deliver(one_place.sink(workers=8), history.items, seed)
    assert_copied(one_place, history)


class Reader(Thread):
    """Reads the accounts again and again; collects the sums of balances, and versions that stepped back."""

    def __init__(self, place):
        super().__init__()
        self._place = place
        self.ended = Event()
        self.sums = set()
        self.stepped_back = []
        self.looks = 0

    def run(self):
        seen = {}
        while not self.ended.is_set():
            rows = self._place.rows(ACCOUNTS)
            self.sums.add(sum(balance for _, balance, _ in rows))
            self.stepped_back += [row for row in rows if row[2] < seen.get(row[0], 0)]
            seen |= {key: version for key, _, version in rows}
            self.looks += 1


@pytest.mark.parametrize("workers", [1, 4])
def test_a_reader_sees_whole_transactions_and_no_row_steps_back(one_place, workers):
    prepared(one_place)
    history = Conflicts(7, 1000)
    deliver(one_place.sink(workers=workers), history.items[:6])
    reader = Reader(one_place)
    reader.start()
    try:
        deliver(one_place.sink(workers=workers), history.items, 1)
    finally:
        reader.ended.set()
        reader.join()
    assert reader.looks > 5
    assert reader.sums == {BALANCE}
    assert reader.stepped_back == []


KILLS = 10
"""Number of kills for each seed and kind of server."""


def killed_again_and_again(place, folder, seed, workers):
    """Apply a history by processes of which KILLS are killed at named points.

    The history goes on with more transactions if a process reaches its end.
    """
    prepared(place, counting=True)
    random = Random(seed)
    url = place.server.url(place.database)
    length, kills = 300, 0
    while True:
        point = f"{random.choice(POINTS)}:{random.randint(1, 6)}" if kills < KILLS else ""
        chosen = random.choice(workers)
        command = [sys.executable, "-m", conflicts.__name__, url, str(seed), str(length), str(chosen)]
        with Child(command, folder / "log", failpoint=point) as child:
            status = child.exit_status()
            assert status in (0, -9), child.output()[-3000:]
        kills += status == -9
        if not point:
            break
        length += 100 * (status == 0)
    assert kills == KILLS
    history = Conflicts(seed, length)
    assert_copied(place, history)
    assert_counted(place, history)


def test_a_change_is_made_once_however_often_the_process_is_killed(one_place, tmp_path):
    killed_again_and_again(one_place, tmp_path, 1, (1, 4, 16))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_change_is_made_once_after_many_kills(one_place, tmp_path, seed):
    killed_again_and_again(one_place, tmp_path, seed, (1, 4, 16))


def test_a_lock_of_somebody_else_stalls_only_what_depends_on_it(place):
    loaded(place, ORDERS, rows=[(1, "a"), (2, "b")])
    sink = place.sink(workers=2)
    with closing(sink):
        work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0))
        with transaction_of_another(place) as other:
            other.execute("SELECT * FROM orders WHERE id = 1 FOR UPDATE")
            work.accept([transaction(30, update(ORDERS, (1, "a"), (1, "x")))])
            work.accept([transaction(31, update(ORDERS, (2, "b"), (2, "y")))])
            work.accept([transaction(32, update(ORDERS, (1, "x"), (1, "z")))])
            work.run(0)
            eventually(lambda: (2, "y") in place.rows(ORDERS))
            assert (1, "a") in place.rows(ORDERS)
            assert work.statistics().checkpoint.ts == 20
            waits = eventually(sink.waits)
            assert "commit ts 30" in waits[0].reason
            assert "shop.orders" in waits[0].reason
        work.flush(0)
    assert sorted(place.rows(ORDERS)) == [(1, "z"), (2, "y")]
    assert work.statistics().checkpoint.ts == 32


def deliver_meanwhile(place, history, disturb):
    """Apply a history; every few transactions something disturbs it. Return the number of retries."""
    sink = place.sink(workers=4)
    with closing(sink):
        work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0))
        retries = 0

        def is_done():
            nonlocal retries
            try:
                work.run(0)
                work.flush(0)
            except Retryable:
                retries += 1
                return False
            return True

        for first in range(0, len(history.items), 10):
            work.accept(history.items[first : first + 10])
            if first % 50 == 0:
                disturb()
            eventually(is_done)
    return retries


def test_a_lost_connection_of_a_worker_repeats_nothing(private_place):
    prepared(private_place)
    history = Conflicts(3, 200)
    assert deliver_meanwhile(private_place, history, lambda: kill_sessions(private_place)) > 0
    assert_copied(private_place, history)


def test_a_server_that_restarts_meanwhile_has_each_change_once(private_postgresql):
    place = PostgresPlace(private_postgresql.start(), "postgres")
    prepared(place, counting=True)
    history = Conflicts(4, 120)

    def restart():
        private_postgresql.kill()
        private_postgresql.start()

    assert deliver_meanwhile(place, history, restart) > 0
    assert_copied(place, history)
    assert_counted(place, history)


def test_a_deadlock_with_another_session_is_tried_again(on_postgres):
    loaded(on_postgres, ORDERS, rows=[(1, "a"), (2, "b"), (3, "c")])
    own = "SELECT wait_event_type FROM pg_stat_activity WHERE application_name = 'tidemill'"
    sink = on_postgres.sink(workers=2)
    with closing(sink):
        work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0))
        with transaction_of_another(on_postgres) as other:
            other.execute("SELECT * FROM orders WHERE id = 2 FOR UPDATE")
            changes = [delete(ORDERS, 1, "a"), update(ORDERS, (2, "b"), (2, "x"))]
            work.accept([transaction(30, *changes), transaction(31, update(ORDERS, (3, "c"), (3, "y")))])
            work.run(0)
            eventually(lambda: ("Lock",) in on_postgres.query(own))
            other.execute("SELECT * FROM orders WHERE id = 1 FOR UPDATE")
            eventually(lambda: (3, "y") in on_postgres.rows(ORDERS))
        work.flush(0)
    assert sorted(on_postgres.rows(ORDERS)) == [(2, "x"), (3, "y")]
    assert stored_ts(on_postgres) == [(31,)]


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE UNIQUE INDEX ON shop.items (lower(code))",
        "CREATE UNIQUE INDEX ON shop.lines ((id + 1))",
        "CREATE UNIQUE INDEX ON shop.items (slot) WHERE n > 3",
    ],
)
def test_rows_whose_keys_are_not_known_keep_the_commit_order(on_postgres, definition):
    prepared(on_postgres, counting=True)
    on_postgres.query(definition)
    history = Conflicts(5, 400)
    deliver(on_postgres.sink(workers=8), history.items, 5)
    assert_copied(on_postgres, history)
    assert_counted(on_postgres, history)


def test_a_deadlock_between_workers_repeats_one_of_them(on_mariadb):
    place = on_mariadb
    loaded(place, ORDERS, rows=[(1, "a"), (2, "b"), (3, "c")])
    place.query("CREATE TABLE touched (id INT PRIMARY KEY, times INT)")
    place.query("INSERT INTO touched VALUES (1, 0), (2, 0)")
    place.query(
        "CREATE TRIGGER crossing AFTER UPDATE ON orders FOR EACH ROW IF NEW.id < 3 THEN "
        "UPDATE touched SET times = times + 1 WHERE id = NEW.id; "
        f"DO GET_LOCK(CONCAT('{place.database} ', NEW.id), 60); "
        "UPDATE touched SET times = times + 1 WHERE id = 3 - NEW.id; END IF"
    )
    deadlocks = "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'"
    ((_, before),) = place.query(deadlocks)
    at_gates = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'"
    with (
        closing(sink := place.sink(workers=2)),
        place.server.connect(database=place.database) as other,
        other.cursor() as cursor,
    ):
        for number in 1, 2:
            cursor.execute(f"DO GET_LOCK('{place.database} {number}', 0)")
        work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0))
        work.accept([transaction(30, update(ORDERS, (3, "c"), (3, "z")))])
        work.run(0)
        work.flush(0)
        eventually(lambda: sink.statistics().workers.busy == 0)
        work.accept([transaction(31, update(ORDERS, (1, "a"), (1, "x")))])
        work.accept([transaction(32, update(ORDERS, (2, "b"), (2, "y")))])
        work.run(0)
        eventually(lambda: place.query(at_gates) == [(2,)])
        cursor.execute("DO RELEASE_ALL_LOCKS()")
        work.flush(0)
    ((_, after),) = place.query(deadlocks)
    assert int(after) > int(before)
    assert sorted(place.rows(ORDERS)) == [(1, "x"), (2, "y"), (3, "z")]
    assert place.query("SELECT times FROM touched") == [(2,), (2,)]


def test_a_restart_of_the_server_repeats_nothing(private_mariadb):
    server = private_mariadb.start()
    server.execute("CREATE DATABASE shop")
    place = MariaDbPlace(server, "shop")
    prepared(place, counting=True)
    history = Conflicts(5, 200)
    with closing(sink := place.sink(workers=4)):
        work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0))

        def is_done():
            try:
                work.run(0)
                work.flush(0)
            except Retryable:
                return False
            return True

        for first in range(0, len(history.items), 20):
            work.accept(history.items[first : first + 20])
            with suppress(Retryable):
                work.run(0)
            if first % 60 == 40:
                server.kill()
                assert not is_done()
                server.start()

        eventually(is_done)
    assert_copied(place, history)
    counted = Counter(place.query("SELECT tbl, op FROM counted"))
    assert counted == Counter({key: n for key, n in history.counts.items() if key[0] != "accounts"})


def test_updates_that_share_a_statement_find_a_missing_row(place):
    loaded(place, ORDERS, rows=[(1, "a"), (2, "b")])
    changes = [update(ORDERS, (n, "old"), (n, "new")) for n in (1, 2, 3)]
    with pytest.raises(SinkError, match=r"update of shop\.orders \(id=3\): there is no such row"):
        feed(place.sink(), [transaction(30, *changes)])
    assert sorted(place.rows(ORDERS)) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("workers", [1, 4])
def test_in_safe_mode_changes_are_applied_again(place, workers):
    loaded(place, ORDERS, rows=[(1, "a"), (2, "b"), (3, "c")])
    changes = [
        insert(ORDERS, 1, "x"),
        insert(ORDERS, 4, "d"),
        update(ORDERS, (2, "?"), (2, "y")),
        update(ORDERS, (7, "?"), (8, "e")),
        delete(ORDERS, 3, "c"),
        delete(ORDERS, 9, "c"),
    ]
    for ts in 30, 31:
        feed(place.sink(workers=workers, safe_mode=True), [transaction(ts, *changes)])
    assert sorted(place.rows(ORDERS)) == [(1, "x"), (2, "y"), (4, "d"), (8, "e")]


def test_in_safe_mode_rows_without_a_key_are_deleted_where_they_are(place):
    loaded(place, LOOSE, rows=[(1, "a"), (2, "b")])
    changes = [delete(LOOSE, 1, "a"), delete(LOOSE, 9, None), update(LOOSE, (2, "b"), (2, None))]
    feed(place.sink(safe_mode=True), [transaction(30, *changes)])
    assert place.rows(LOOSE) == [(2, None)]


@pytest.mark.parametrize("workers", [1, 4])
def test_in_safe_mode_a_history_of_keyed_rows_may_begin_again(one_place, workers):
    prepared(one_place)
    if isinstance(one_place, PostgresPlace):
        one_place.query("ALTER TABLE shop.lines DROP CONSTRAINT lines_item_fkey")
    history = Conflicts(6, 150)
    deliver(one_place.sink(workers=workers), history.items)
    keyed = [ITEMS, ACCOUNTS]
    changes: dict[int, list[RowChange]] = {}
    for item in history.items:
        if isinstance(item, Transaction) and item.chunk is None:
            changes.setdefault(item.commit_ts, []).extend(one for one in item.rows if one.table in keyed)
    again = [transaction(ts + 10_000, *rows) for ts, rows in changes.items()]
    feed(one_place.sink(workers=workers, safe_mode=True), again, max_rows=1000)
    for table in keyed:
        assert Counter(one_place.rows(table)) == history.rows(table)


@pytest.mark.parametrize(("seed", "workers"), [(8, 1), (9, 4)])
def test_changes_merged_by_row_leave_the_rows_of_the_commit_order(one_place, seed, workers):
    prepared(one_place)
    if isinstance(one_place, PostgresPlace):  # a table with foreign keys isn't merged
        one_place.query("ALTER TABLE shop.lines DROP CONSTRAINT lines_item_fkey")
    else:
        one_place.query("ALTER TABLE `lines` DROP FOREIGN KEY lines_ibfk_1")
    history = Conflicts(seed, 300)
    deliver(one_place.sink(workers=workers, merge=True), history.items, seed)
    assert_copied(one_place, history)


@pytest.mark.parametrize("options", [MySqlOptions, PostgresOptions])
def test_an_order_that_several_workers_cannot_keep_is_refused(options):
    with pytest.raises(ConfigError, match='order = "strict" needs one worker, not 2'):
        options(workers=2, order="strict")


def test_a_packet_is_rendered_while_the_server_works_on_the_one_before(on_mariadb):
    place = on_mariadb
    loaded(place, ORDERS, rows=[(1, "a"), (2, "b")])
    target = MySqlDatabase(parsed(place.server.url(place.database)), MySqlOptions(), "other")
    with closing(target), place.server.connect(database=place.database) as other, other.cursor() as cursor:
        target.connect_worker()
        cursor.execute("START TRANSACTION")
        cursor.execute("SELECT * FROM orders WHERE id = 1 FOR UPDATE")

        def statements():
            yield Statement(f"UPDATE {name} SET note = 'z' WHERE id = 1", 1)
            yield Statement(f"DO LENGTH('{'x' * 300_000}')", 0)
            cursor.execute("ROLLBACK")  # otherwise the first packet waits for the lock until it fails
            yield Statement(f"DELETE FROM {name} WHERE id = 2", 1)

        name = f"`{place.database}`.orders"
        target.begin()
        target.rows._send_all(statements())
        target.commit()
    assert place.rows(ORDERS) == [(1, "z")]


@pytest.mark.parametrize("options", [MySqlOptions, PostgresOptions])
def test_several_workers_are_the_default_where_the_order_allows_them(options):
    assert options().parallel_workers == 4
    assert options(workers=1).parallel_workers == options(order="strict").parallel_workers == 0
    with pytest.raises(ConfigError, match=r"^sink\.workers: expected `int` >= 1"):
        checked(options(workers=0), "sink")
