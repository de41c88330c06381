"""Tables that come and go, sinks at different places, and what a feed says of itself meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import tidemill
from tidemill.emulator.sql.sql import Tidb
from tidemill.events import Item
from tidemill.testing.mariadb import MariaDb, missing
from tidemill.testing.progress import eventually

from .world import run

Rows = dict[tuple[str, Any], tuple[Any, ...]]


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=2, tick_seconds=0.02) as made:
        made.execute("create database shop")
        made.execute("create table shop.item (id int primary key, name varchar(40))")
        insert(made, "shop.item", (1, "one"), (2, "two"))
        yield made


def insert(tidb: Tidb, table: str, *rows: tuple[Any, ...]) -> int:
    with tidb.transaction() as txn:
        for row in rows:
            txn.insert(table, row)
    return txn.commit_ts


class Held:
    """The rows that a target would have, by table and first column; none may come twice."""

    def __init__(self) -> None:
        self.rows: Rows = {}

    def __call__(self, items: Sequence[Item]) -> None:
        for item in items:
            for row in getattr(item, "rows", ()):
                name = row.table.full_name
                if row.before is not None:
                    del self.rows[name, row.before[0]]
                if row.after is not None:
                    assert (name, row.after[0]) not in self.rows
                    self.rows[name, row.after[0]] = row.after

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return sorted(row for (table, _), row in self.rows.items() if table == name)


def url(directory: Path, name: str = "copy") -> dict[str, str]:
    return {"name": name, "url": f"sqlite:///{directory}/{name}.db"}


def copied(directory: Path, table: str, name: str = "copy") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(directory / f"{name}.db")) as connection:
        return connection.execute(f'SELECT * FROM "{table}" ORDER BY 1').fetchall()


# --- tables ----------------------------------------------------------------------------------------


def test_a_table_that_is_made_while_the_feed_runs_is_followed_from_its_first_row(tidb, tmp_path):
    with Followed(tidb, tmp_path) as (feed, held):
        tidb.execute("create table shop.later (id int primary key, n int)")
        insert(tidb, "shop.later", (1, 10), (2, 20))
        insert(tidb, "shop.item", (3, "three"))
        eventually(lambda: held.of("shop.later") == [(1, 10), (2, 20)])
        eventually(lambda: held.of("shop.item") == [(1, "one"), (2, "two"), (3, "three")])
        assert feed.status().state == "normal"


def test_a_database_that_is_made_while_the_feed_runs_is_followed_if_a_pattern_says_so(tidb, tmp_path):
    tables = ["shop.*", "sh*.extra"]
    tidb.execute("create table shop.extra (id int primary key)")
    with Followed(tidb, tmp_path, tables=tables) as (_feed, held):
        tidb.execute("create database shelf")
        tidb.execute("create table shelf.extra (id int primary key)")
        tidb.execute("create table shelf.other (id int primary key)")
        insert(tidb, "shelf.other", (1,))
        insert(tidb, "shelf.extra", (2,))
        eventually(lambda: held.of("shelf.extra") == [(2,)])
        assert held.of("shelf.other") == []


def test_partitions_are_one_table_and_one_more_is_followed(tidb, tmp_path):
    tidb.execute(
        "create table shop.part (id int primary key, n int) partition by range (id)"
        " (partition p0 values less than (10), partition p1 values less than (20))"
    )
    insert(tidb, "shop.part", (1, 1), (11, 1))
    with Followed(tidb, tmp_path) as (_feed, held):
        eventually(lambda: held.of("shop.part") == [(1, 1), (11, 1)])
        tidb.execute("alter table shop.part add partition (partition p2 values less than (30))")
        insert(tidb, "shop.part", (2, 2), (21, 2))
        eventually(lambda: held.of("shop.part") == [(1, 1), (2, 2), (11, 1), (21, 2)])


def test_a_table_is_loaded_again_after_a_partition_was_dropped(tidb, tmp_path):
    tidb.execute(
        "create table shop.part (id int primary key) partition by range (id)"
        " (partition p0 values less than (10), partition p1 values less than (20))"
    )
    assert run(tidb, tmp_path, tables=["shop.*"], sinks=[url(tmp_path)]).error is None
    insert(tidb, "shop.part", (1,), (11,))
    tidb.execute("alter table shop.part drop partition p0")
    insert(tidb, "shop.part", (12,))
    assert run(tidb, tmp_path, tables=["shop.*"], sinks=[url(tmp_path)]).error is None
    assert copied(tmp_path, "shop.part") == [(11,), (12,)]


def test_tables_that_no_pattern_names_may_change_as_they_like(tidb, tmp_path):
    tidb.execute("create database other")
    tidb.execute("create table other.thing (id int primary key)")
    with Followed(tidb, tmp_path) as (feed, held):
        tidb.execute("truncate table other.thing")
        tidb.execute("rename table other.thing to other.stuff")
        tidb.execute("drop database other")
        insert(tidb, "shop.item", (3, "three"))
        eventually(lambda: (3, "three") in held.of("shop.item"))
        assert feed.status().state == "normal"


# --- sinks -----------------------------------------------------------------------------------------


def test_a_sink_that_joins_later_gets_a_snapshot_and_the_other_goes_on_where_it_was(tidb, tmp_path):
    early, late = url(tmp_path, "early"), url(tmp_path, "late")
    assert run(tidb, tmp_path, tables=["shop.*"], sinks=[early]).error is None
    insert(tidb, "shop.item", (3, "three"))
    with tidb.transaction() as txn:
        txn.update("shop.item", 1, {"name": "uno"})
        txn.delete("shop.item", 2)
    assert run(tidb, tmp_path, tables=["shop.*"], sinks=[early, late]).error is None
    for name in ("early", "late"):
        assert copied(tmp_path, "shop.item", name) == [(1, "uno"), (3, "three")]


def test_a_sink_that_was_left_behind_gets_what_it_lacks_and_the_others_nothing_twice(tidb, tmp_path):
    first, second = url(tmp_path, "first"), url(tmp_path, "second")
    assert run(tidb, tmp_path, tables=["shop.*"], sinks=[first, second]).error is None
    insert(tidb, "shop.item", (3, "three"))
    assert run(tidb, tmp_path, tables=["shop.*"], sinks=[first]).error is None
    insert(tidb, "shop.item", (4, "four"))
    assert run(tidb, tmp_path, tables=["shop.*"], sinks=[first, second]).error is None
    for name in ("first", "second"):
        assert [row[0] for row in copied(tmp_path, "shop.item", name)] == [1, 2, 3, 4]


# --- from where to where ---------------------------------------------------------------------------


def test_without_a_snapshot_only_what_comes_from_now_on_is_delivered(tidb, tmp_path):
    held = Held()
    assert run(tidb, tmp_path, held, tables=["shop.*"], snapshot=False).error is None
    assert held.rows == {}
    insert(tidb, "shop.item", (3, "three"))
    assert run(tidb, tmp_path, held, tables=["shop.*"], snapshot=False).error is None
    assert held.of("shop.item") == [(3, "three")]


def test_a_feed_ends_at_a_ts_with_all_that_was_committed_up_to_it(tidb, tmp_path):
    start_ts = tidb.tso()
    at = [insert(tidb, "shop.item", (number, "x")) for number in range(10, 20)]
    held = Held()
    feed = run(tidb, tmp_path, held, tables=["shop.*"], until=str(at[4]), start_ts=start_ts)
    assert feed.error is None
    assert [row[0] for row in held.of("shop.item")] == [10, 11, 12, 13, 14]
    assert feed.status().state == "finished"
    assert int(feed.status().sinks[0].position) == at[4]
    assert run(tidb, tmp_path, held, tables=["shop.*"]).error is None
    assert [row[0] for row in held.of("shop.item")] == list(range(10, 20))


# --- what it says of itself ------------------------------------------------------------------------


def test_its_status_names_the_cluster_position_and_lag(tidb, tmp_path):
    with Followed(tidb, tmp_path) as (feed, _held):
        now = tidb.tso()
        status = eventually(lambda: (s := feed.status()).sinks[0].ts >= now and s)
        assert status.source == f"tikv cluster {tidb.options.cluster_id}"
        assert (status.state, status.rows, status.sinks[0].loading) == ("normal", 2, False)
        assert int(status.position) >= status.sinks[0].ts >= now
        assert status.sinks[0].position == str(status.sinks[0].ts)
        eventually(lambda: feed.status().sinks[0].lag_seconds < 5)


def test_a_snapshot_says_how_far_it_is(tidb, tmp_path, monkeypatch):
    goes_on, chunks = Event(), count()

    def read(_point):
        """Hold the snapshot at its third row."""
        if next(chunks) == 2:
            goes_on.wait()

    monkeypatch.setattr("tidemill.sources.tikv_snapshot.CHUNK_ROWS", 1)
    monkeypatch.setattr("tidemill.sources.tikv_snapshot.reach", read)
    tidb.execute("create table shop.later (id int primary key)")
    insert(tidb, "shop.item", *((number, "x") for number in range(10, 60)))
    with tidemill.open(f"tikv://{tidb.pd_address}", ["shop.*"], data_dir=tmp_path) as feed:
        try:
            next(iter(feed))
            found = eventually(lambda: feed.status().snapshot)
            assert (found.table, found.tables, found.tables_done) == ("shop.item", 2, 0)
            assert feed.status().sinks[0].loading
        finally:
            goes_on.set()


async def test_an_async_loop_gets_snapshot_and_changes(tidb, tmp_path):
    held, opened = Held(), tidemill.open(f"tikv://{tidb.pd_address}", ["shop.*"], data_dir=tmp_path)
    async with opened as feed:
        async for batch in feed.batches():
            held(batch)
            feed.ack(batch[-1])
            if held.of("shop.item") == [(1, "one"), (2, "two")]:
                insert(tidb, "shop.item", (3, "three"))
            if (3, "three") in held.of("shop.item"):
                break
    assert held.of("shop.item") == [(1, "one"), (2, "two"), (3, "three")]


@pytest.fixture
def mariadb_copy(request: pytest.FixtureRequest) -> Any:
    """A MariaDB, if there is one here."""
    if reason := missing():
        pytest.skip(reason)
    with MariaDb(request.getfixturevalue("tmp_path") / "mariadb") as server:
        yield server


def test_tables_of_tidb_are_copied_to_mariadb(tidb, tmp_path, mariadb_copy):
    tidb.execute(
        "create table shop.kinds (id bigint unsigned primary key, price decimal(10,2), at datetime(3),"
        " state enum('new','old'), data varbinary(8), doc json)"
    )
    insert(tidb, "shop.kinds", (2**64 - 1, "9.99", "2026-01-02 03:04:05.678", "old", b"\x00\xff", '{"a": 1}'))
    sink = {"name": "maria", "url": mariadb_copy.url()}
    assert run(tidb, tmp_path, tables=["shop.*"], sinks=[sink]).error is None
    tidb.execute("alter table shop.item add column size int default 7")
    insert(tidb, "shop.item", (3, "three", 8))
    assert run(tidb, tmp_path, tables=["shop.*"], sinks=[sink]).error is None
    with mariadb_copy.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM shop.item ORDER BY id")
        assert list(cursor.fetchall()) == [(1, "one", 7), (2, "two", 7), (3, "three", 8)]
        cursor.execute("SELECT id, CAST(price AS CHAR), CAST(at AS CHAR), state, HEX(data) FROM shop.kinds")
        expected = (2**64 - 1, "9.99", "2026-01-02 03:04:05.678", "old", "00FF")
        assert cursor.fetchone() == expected


# ---------------------------------------------------------------------------------------------------


class Followed:
    """A feed that goes on in this process until it is left, its snapshot loaded."""

    def __init__(self, tidb: Tidb, directory: Path, tables: Sequence[str] = ("shop.*",)) -> None:
        self.held = Held()
        self._feed = tidemill.open(f"tikv://{tidb.pd_address}", list(tables), data_dir=directory)

    def __enter__(self) -> tuple[tidemill.OpenFeed, Held]:
        self._feed.__enter__()
        self._thread = Thread(target=self._consume)
        self._thread.start()
        eventually(lambda: (status := self._feed.status().sinks[0]).position and not status.loading)
        return self._feed, self.held

    def _consume(self) -> None:
        for txn in self._feed:
            self.held([txn])
            self._feed.ack(txn)

    def __exit__(self, *exc_info: object) -> None:
        self._feed.__exit__(*exc_info)
        self._thread.join()
