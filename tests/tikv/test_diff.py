"""`tidemill diff` of a TiDB cluster: rows are read as of the target's checkpoint."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from threading import Event, Thread

import pytest

from tidemill.compare import Difference, open_diff
from tidemill.compare.report import line_of
from tidemill.compare.verification import verified_feed
from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.testing.progress import eventually, feed_ended, joined


@pytest.fixture
def tidb():
    with Tidb(stores=2, tick_seconds=0.02) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.item (id bigint primary key, price decimal(10,2), note varchar(20))")
        tidb.execute("create table shop.line (a varchar(9), b int, n int, primary key (a, b) clustered)")
        tidb.execute("create table shop.log (who varchar(9), what json)")
        with tidb.transaction() as txn:
            for number in range(1, 51):
                txn.insert("shop.item", (number, number, "x"))
                txn.insert("shop.line", (f"k{number}", number, 0))
                txn.insert("shop.log", ("me", '{"b": 1, "aa": [1.0, 2.5]}'))
        yield tidb


@pytest.fixture
def given(tidb, tmp_path):
    return {
        "name": "copy",
        "data_dir": str(tmp_path / "state"),
        "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
        "sink": [{"name": "copy", "url": f"sqlite:///{tmp_path / 'copy.db'}"}],
    }


def run(given):
    options = feed_options(given | {"until": "now"})
    feed = Feed(options, open_sinks(options))
    feed.start()
    feed_ended(feed)
    assert feed.error is None


def change(tmp_path, *statements):
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def lines(found):
    return sorted(line_of(one) for one in found if isinstance(one, Difference))


def test_differences_are_found_and_repaired(given, tidb, tmp_path):
    run(given)
    with tidb.transaction() as txn:
        txn.update("shop.item", 1, {"note": "later than the checkpoint"})
    with open_diff(given) as compared:
        assert [(one.rows, one.is_equal) for one in compared] == [(50, True)] * 3
    change(
        tmp_path,
        """UPDATE "shop.item" SET price='2.0' WHERE id=2""",
        """DELETE FROM "shop.item" WHERE id=50""",
        """UPDATE "shop.line" SET a='K7' WHERE a='k7'""",
        """INSERT INTO "shop.log" VALUES ('me', NULL)""",
    )
    with open_diff(given) as compared:
        found = []
        for one in compared:
            found.append(one)
            if isinstance(one, Difference):
                assert compared.apply()
    assert lines(found) == [
        "shop.item id=2: price is '2.00' in the source, '2.0' in the target",
        "shop.item id=50: missing in the target",
        "shop.line a='K7', b=7: only in the target",
        "shop.line a='k7', b=7: missing in the target",
        "shop.log who='me', what=NULL: only in the target",
    ]
    with open_diff(given) as compared:
        assert all(one.is_equal for one in compared)


def test_rows_after_many_large_ones_are_compared(given, tidb, tmp_path):
    given["source"]["scan_page"] = 16
    tidb.execute("create table shop.page (id bigint primary key, body longtext)")
    with tidb.transaction() as txn:
        for number in range(100):
            txn.insert("shop.page", (number, "x" * 60_000))
    run(given)
    change(tmp_path, """DELETE FROM "shop.page" WHERE id=99""")
    with open_diff(given, ["shop.page"]) as compared:
        *differences, result = list(compared)
    assert (len(differences), result.rows, result.missing) == (1, 100, 1)


def test_no_difference_is_reported_while_transactions_go_on(given, tidb):
    run(given)
    stopping, count = Event(), [0]

    def write():
        while not stopping.is_set():
            with tidb.transaction() as txn:
                txn.update("shop.item", count[0] % 50 + 1, {"price": count[0] % 3})
                txn.insert("shop.log", ("you", "null"))
            count[0] += 1

    options = feed_options(given)
    feed = Feed(options, open_sinks(options))
    feed.start()
    writer = Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            before = count[0]
            eventually(lambda before=before: count[0] > before + 20)
            with open_diff(given) as compared:
                assert lines(compared) == []
    finally:
        stopping.set()
        joined(writer)
        feed.stop()
        feed.wait()
    assert feed.error is None


@pytest.mark.parametrize("repair", [False, True])
def test_a_feed_verifies_its_target_while_transactions_go_on(given, tidb, tmp_path, repair):
    run(given)
    stopping, count = Event(), [0]

    def write():
        while not stopping.wait(0.01):
            with tidb.transaction() as txn:
                txn.update("shop.item", count[0] % 40 + 1, {"price": count[0] % 3})
            count[0] += 1

    feed = verified_feed(feed_options(given | {"verify": {"every": "1s", "share": 1, "repair": repair}}))

    def passes():
        return feed.status().verify[0].passes

    feed.start()
    writer = Thread(target=write)
    writer.start()
    try:
        eventually(lambda: passes() >= 2 and count[0] > 50, sign=lambda: (passes(), count[0]))
        assert feed.status().verify[0].diverged == 0
        change(
            tmp_path,
            """UPDATE "shop.item" SET note='y' WHERE id=45""",
            """DELETE FROM "shop.log" WHERE rowid=1""",
        )
        before = passes()
        eventually(lambda: passes() >= before + 2, sign=passes)
        (one,) = feed.status().verify
        found = {table.table: (table.missing, table.extra, table.changed) for table in one.divergences}
        assert found == ({} if repair else {"shop.item": (0, 0, 1), "shop.log": (1, 0, 0)})
        assert one.repaired == (2 if repair else 0)
    finally:
        stopping.set()
        joined(writer)
        feed.stop()
        feed.wait()
    assert feed.error is None
