"""Comparisons at a syncpoint: of a TiDB cluster with targets into which several workers write."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from threading import Event, Thread

import pytest

from tidemill.compare import Difference, open_diff, verifier
from tidemill.compare.report import line_of
from tidemill.compare.settle import MOST_ROUNDS
from tidemill.compare.verification import verified_feed
from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError, SinkError
from tidemill.testing.answers import Answer, Gate
from tidemill.testing.progress import eventually, feed_ended, joined
from tidemill.testing.tidb_answers import dialect

from ..dialects.places import MariaDbPlace, PostgresPlace
from .test_workers import transaction_of_another

ROWS = 50


@pytest.fixture
def tidb():
    with Tidb(stores=1, tick_seconds=0.02) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.item (id bigint primary key, n int)")
        with tidb.transaction() as txn:
            for number in range(ROWS):
                txn.insert("shop.item", (number, 0))
        yield tidb


@pytest.fixture(params=["mariadb", "postgresql"])
def place(request):
    if request.param == "postgresql":
        server, database = request.getfixturevalue("postgresql"), request.getfixturevalue("postgres_database")
        return PostgresPlace(server, database, "copy")
    return MariaDbPlace(request.getfixturevalue("mariadb"), request.getfixturevalue("database"), "copy")


def feed_into(tidb, url, tmp_path, **sink):
    return {
        "name": "copy",
        "data_dir": str(tmp_path / "state"),
        "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
        "sink": [{"name": "copy", "url": url, **sink}],
    }


def started(given):
    options = feed_options(given)
    feed = Feed(options, open_sinks(options))
    feed.start()
    return feed


def load(given):
    feed = started(given | {"until": "now"})
    feed_ended(feed)
    assert feed.error is None


@contextmanager
def running(given):
    feed = started(given)
    try:
        yield feed
    finally:
        feed.stop()
        feed.wait()
    assert feed.error is None


@contextmanager
def writing(tidb):
    """Change all rows, one after the other and each in a transaction; give the number of them."""
    stopping, done = Event(), [0]

    def write():
        for number in count(1):
            if stopping.is_set():
                return
            with tidb.transaction() as txn:
                txn.update("shop.item", number % ROWS, {"n": number})
            done[0] = number

    writer = Thread(target=write)
    writer.start()
    try:
        yield done
    finally:
        stopping.set()
        joined(writer)


def update_each(tidb):
    for number in range(1, ROWS):
        with tidb.transaction() as txn:
            txn.update("shop.item", number, {"n": number})


def found(given):
    with open_diff(given, at_syncpoint=True) as compared:
        return [line_of(one) for one in compared if isinstance(one, Difference)]


def table_of(place):
    return place.named("shop", "item")


def test_only_what_was_planted_differs_while_several_workers_write(tidb, place, tmp_path):
    given = feed_into(tidb, place.url, tmp_path, syncpoint_seconds=0.05)
    load(given)
    place.query(f"INSERT INTO {table_of(place)} VALUES ({ROWS}, 7)")
    with running(given), writing(tidb) as done:
        for _ in range(3):
            before = done[0]
            eventually(lambda before=before: done[0] > before + 20)
            assert found(given) == [f"shop.item id={ROWS}: only in the target"]


def test_a_comparison_waits_for_a_syncpoint_while_workers_are_ahead_of_the_checkpoint(tidb, place, tmp_path):
    given = feed_into(tidb, place.url, tmp_path, syncpoint_seconds=0.05)
    load(given)
    results = []
    with running(given) as feed:
        with transaction_of_another(place) as other:
            other.execute(f"UPDATE {table_of(place)} SET n=-1 WHERE id=1")
            update_each(tidb)
            eventually(lambda: place.query(f"SELECT 1 FROM {table_of(place)} WHERE n > 1"))
            before = place.syncpoint()
            comparing = Thread(target=lambda: results.append(found(given)))
            comparing.start()
            eventually(lambda: feed.status().sinks[0].transactions_waiting)
            assert place.syncpoint() == before
        joined(comparing)
    assert results == [[]]


def test_a_verification_looks_again_at_a_syncpoint_while_several_workers_write(
    tidb, place, tmp_path, monkeypatch
):
    monkeypatch.setattr(verifier, "ROUNDS", MOST_ROUNDS + 1)  # no difference is one without a syncpoint
    given = feed_into(tidb, place.url, tmp_path, syncpoint_seconds=0.05)
    load(given)
    place.query(f"INSERT INTO {table_of(place)} VALUES ({ROWS}, 7)")
    feed = verified_feed(feed_options(given | {"verify": {"every": "1s", "share": 1}}))
    feed.start()
    try:
        with writing(tidb) as done:
            eventually(
                lambda: feed.status().verify[0].passes >= 2 and done[0] > 50,
                sign=lambda: (feed.status().verify[0].passes, done[0]),
            )
        (one,) = feed.status().verify
        assert [table.rows for table in one.divergences] == [(f"shop.item id={ROWS}: only in the target",)]
    finally:
        feed.stop()
        feed.wait()
    assert feed.error is None


def test_without_syncpoints_a_target_that_is_ahead_is_refused(tidb, place, tmp_path):
    given = feed_into(tidb, place.url, tmp_path)
    load(given)
    with running(given), transaction_of_another(place) as other:
        other.execute(f"UPDATE {table_of(place)} SET n=-1 WHERE id=1")
        update_each(tidb)
        eventually(lambda: place.query(f"SELECT 1 FROM {table_of(place)} WHERE n > 1"))
        with pytest.raises(ConfigError, match='set syncpoint_seconds, or order = "strict"'):
            found(given)


def test_a_tidb_is_read_as_of_the_last_syncpoint(tidb, mysql97, mysql_database, tmp_path):
    past = [
        Answer(r"@@tidb_current_ts", instead="4711"),
        Answer(r"SET SESSION tidb_snapshot='4711'", instead="START TRANSACTION WITH CONSISTENT SNAPSHOT"),
        Answer(r"SET SESSION tidb_snapshot=''", instead="ROLLBACK"),
    ]
    with Gate(mysql97.port, [*past, *dialect()]) as gate:
        place = MariaDbPlace(mysql97, mysql_database, "copy")
        given = feed_into(tidb, gate.url(mysql_database), tmp_path, syncpoint_seconds=0.000_001, workers=1)
        load(given)
        with tidb.transaction() as txn:
            txn.update("shop.item", 1, {"n": 8})
        load(given)
        assert place.syncpoint().secondary_ts == 4711
        with tidb.transaction() as txn:
            txn.update("shop.item", 2, {"n": 9})
        assert found(given) == []
        place.query("UPDATE item SET n=7 WHERE id=3")
        assert found(given) == ["shop.item id=3: n is 0 in the source, 7 in the target"]
        place.query(
            "UPDATE tidemill_syncpoint SET primary_ts = primary_ts + 1 ORDER BY primary_ts DESC LIMIT 1"
        )
        with pytest.raises(SinkError, match="does something else write to it"):
            found(given)


def test_a_source_that_cannot_be_read_at_a_point_is_named(mariadb, database, sql, tmp_path):
    sql("CREATE TABLE item (id INT PRIMARY KEY)")
    given = {
        "name": "copy",
        "data_dir": str(tmp_path / "state"),
        "source": {"url": mariadb.url(), "tables": [f"{database}.*"]},
        "sink": [{"name": "copy", "url": f"sqlite:///{tmp_path}/copy.db"}],
    }
    load(given)
    with pytest.raises(ConfigError, match="a mysql source can't be read as of a syncpoint"):
        found(given)
