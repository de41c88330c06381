"""Rejected changes of rows in a real MariaDB and a real MySQL, with one connection and several."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing
from itertools import count
from random import Random
from threading import Event, Thread

import pytest
from pymysql import OperationalError
from pymysql.constants import ER

from tidemill.sink.registry import open_dead_letters
from tidemill.testing import conflicts
from tidemill.testing.cases import title
from tidemill.testing.changes import ORDERS, delete, insert, transaction, update
from tidemill.testing.child import Child
from tidemill.testing.conflicts import COPY, COUNTED, TABLES, Conflicts, deliver, triggers
from tidemill.testing.progress import eventually, happened, joined

from ..dialects.places import MariaDbPlace, PostgresPlace
from ..sink.letter_cases import CASES, Play, box_of
from .test_sink_mariadb import place_of
from .test_workers import POINTS

REJECTED = {
    "lines": ("insert", "NEW.item % 3 = 0"),
    "notes": ("update", "NEW.word = 'A'"),
    "accounts": ("update", "NEW.version % 40 = 7"),
}
"""Operation and condition of the rows that a target rejects, by table. None has unique values besides its
key."""
LETTERS = {"on_error": "dead letters", "max_dead_letters": 10_000}


@pytest.fixture(params=["mariadb", "mysql"])
def place(request):
    return place_of(request)


@pytest.fixture
def on_mariadb(mariadb, database):
    return MariaDbPlace(mariadb, database)


def url_of(place):
    return place.url or place.server.url(place.database)


def play_of(place, **options):
    tables = (("orders", "note"), ("loose", "word"))

    def reject():
        for table, column in tables:
            for op in ("insert", "update"):
                place.query(
                    f"CREATE TRIGGER {table}_{op} BEFORE {op} ON {table} FOR EACH ROW "
                    f"IF NEW.{column} LIKE 'bad%' THEN "
                    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT='bad note'; END IF"
                )

    def allow():
        for table, _ in tables:
            for op in ("insert", "update"):
                place.query(f"DROP TRIGGER {table}_{op}")

    return Play(place, url_of(place), reject=reject, allow=allow, **options)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_dead_letters(case, place):
    case.expect(play_of(place, workers=1).run(case.commands), rewrite=False)


@pytest.mark.parametrize("workers", [2, 16])
def test_several_workers_keep_the_order_of_a_row(on_mariadb, workers):
    play = play_of(on_mariadb, workers=workers)
    items = [transaction(30, *[insert(ORDERS, key, f"v{key % 4}") for key in range(100)])]
    for version in range(1, 6):
        for key in range(0, 100, 5):
            old, new = (f"{'bad' if (key + n) % 4 == 0 else 'good'} {n}" for n in (version - 1, version))
            before = f"v{key % 4}" if version == 1 else old
            items.append(transaction(30 + 100 * version + key, update(ORDERS, (key, before), (key, new))))
    items.append(transaction(900, delete(ORDERS, 0, "bad 5" if 5 % 4 == 0 else "good 5")))
    play.deliver(items)
    letters = open_dead_letters(url_of(on_mariadb), feed="test").list()
    by_row = {}
    for one in letters:
        by_row.setdefault(one.key, []).append(one.ts)
    assert len(by_row) == 20
    assert all(times == sorted(times) for times in by_row.values())
    assert play.run("allow\nretry").startswith(
        f"applied {' '.join(str(i) for i in range(1, len(letters) + 1))},"
    )
    assert Counter(on_mariadb.rows(ORDERS))[(5, "good 5")] == 1
    assert len(on_mariadb.rows(ORDERS)) == 99


def on_postgres(place):
    """Return a play in PostgreSQL, whose orders and loose are in the schema shop."""
    tables = (("orders", "note"), ("loose", "word"))

    def reject():
        place.query(
            "CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'bad note'; END $$"
        )
        for table, column in tables:
            place.query(
                f"CREATE TRIGGER {table}_bad BEFORE INSERT OR UPDATE ON shop.{table} FOR EACH ROW "
                f"WHEN (NEW.{column} LIKE 'bad%') EXECUTE FUNCTION reject()"
            )

    def allow():
        for table, _ in tables:
            place.query(f"DROP TRIGGER {table}_bad ON shop.{table}")

    return Play(place, place.server.url(place.database), reject=reject, allow=allow, workers=1)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_dead_letters_in_postgresql(case, postgresql, postgres_database):
    place = PostgresPlace(postgresql, postgres_database)
    case.expect(on_postgres(place).run(case.commands), rewrite=False)


# --- seeded histories


def prepared(place):
    for statement in COPY:
        place.query(statement)
    place.query("CREATE TABLE accounts (id INT NOT NULL PRIMARY KEY, balance INT NOT NULL, version INT)")
    place.query(COUNTED)
    place.query("CREATE TABLE strict (is_on INT)")
    place.query("INSERT INTO strict VALUES (1)")
    for table, (op, condition) in REJECTED.items():
        place.query(
            f"CREATE TRIGGER {table}_strict BEFORE {op} ON `{table}` FOR EACH ROW IF {condition} "
            "AND EXISTS (SELECT 1 FROM strict) THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT='bad'; END IF"
        )
    for table in ("items", "lines", "notes", "accounts"):
        for statement in triggers(table):
            place.query(statement)


def assert_copied_once(place, history):
    """After the letters are applied, the rows are those of the source, each change having been made once."""
    place.query("DELETE FROM strict")
    with closing(box_of(url_of(place))) as box:
        assert box.retry().left == ()
        assert box.list() == []
    for table in TABLES:
        assert Counter(place.rows(table)) == history.rows(table), table.name
    counted = Counter(place.query("SELECT tbl, op FROM counted"))
    assert counted == history.counts


@pytest.mark.parametrize("workers", [1, 4, 16])
@pytest.mark.parametrize("seed", range(2))
def test_a_history_with_rejected_rows_is_complete_after_a_retry(place, seed, workers):
    prepared(place)
    history = Conflicts(seed, 300)
    deliver(place.sink(workers=workers, **LETTERS), history.items, seed)
    with closing(box_of(url_of(place))) as box:
        reasons = Counter(one.reason for one in box.list())
    assert reasons["bad"] >= 5
    assert len(reasons) >= 2
    assert_copied_once(place, history)


def killed_again_and_again(place, folder, seed, times):
    prepared(place)
    history = Conflicts(seed, 300)
    random = Random(seed)
    kills = 0
    for number in count():
        nth = random.randint(1, 6)
        point = f"{random.choice(POINTS)}:{nth}" if kills < times and number < 3 * times else ""
        workers = random.choice((1, 4, 16))
        command = [sys.executable, "-m", conflicts.__name__, url_of(place), str(seed), "300", str(workers)]
        with Child([*command, "dead letters"], folder / "log", failpoint=point) as child:
            status = child.exit_status()
            assert status in (0, -9), child.output()[-3000:]
        kills += status == -9
        if status == 0:
            break
    assert_copied_once(place, history)
    return kills


@pytest.mark.long
def test_letters_are_kept_once_however_often_the_process_is_killed(on_mariadb, tmp_path):
    assert killed_again_and_again(on_mariadb, tmp_path, 1, 8) >= 3


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 20))
def test_letters_are_kept_once_after_many_kills(on_mariadb, tmp_path, seed):
    assert killed_again_and_again(on_mariadb, tmp_path, seed, 20) >= 5


def among_others(place, statement):
    """Run a statement again until the server doesn't choose it to end a deadlock with the feed."""
    while True:
        try:
            return place.query(statement)
        except OperationalError as error:
            if error.args[0] != ER.LOCK_DEADLOCK:
                raise


@pytest.mark.parametrize("workers", [1, 4])
def test_letters_may_be_retried_while_the_feed_runs(on_mariadb, workers):
    prepared(on_mariadb)
    history = Conflicts(3, 600)
    failures = []

    retried = Event()

    def run():
        try:
            deliver(on_mariadb.sink(workers=workers, **LETTERS), history.items[: len(history.items) // 2], 3)
            happened(retried)  # so that some are while the feed has changes left
            deliver(on_mariadb.sink(workers=workers, **LETTERS), history.items, 3)
        except BaseException as error:
            failures.append(error)

    feed = Thread(target=run)
    feed.start()
    applied = 0
    with closing(box_of(url_of(on_mariadb))) as box:
        eventually(box.list)
        for number in count():
            if not feed.is_alive():
                break
            if number % 3 == 0:
                among_others(on_mariadb, "DELETE FROM strict")
            applied += len(box.retry().applied)
            if applied:
                retried.set()
            if number % 3 == 2:
                among_others(on_mariadb, "INSERT INTO strict VALUES (1)")
    joined(feed)
    assert failures == []
    assert applied
    assert_copied_once(on_mariadb, history)
