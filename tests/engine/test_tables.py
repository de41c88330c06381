"""Tables of an emulated TiDB that are paused, parked, added and left out, copied into SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.engine.requests import RequestFile, TableRequests
from tidemill.engine.tables import TableStatus
from tidemill.errors import ConfigError
from tidemill.testing.feed_run import run_to_end

NAMES = ("a", "b", "c", "d")
ROUNDS = 6
ORDINARY = 4
"""Histories of every run; the others are soaks."""


class Copied:
    """A feed of the schema shop into two files."""

    def __init__(self, tidb: Tidb, directory: Path) -> None:
        self.tidb = tidb
        self.directory = directory
        self.config: dict[str, Any] = {
            "data_dir": str(directory / "state"),
            "on_table_error": "park",
            "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
            "sink": [{"name": name, "url": f"sqlite:///{directory}/{name}.db"} for name in ("one", "two")],
        }
        self.requests = RequestFile(directory / "state")

    def put(self, table: str, *ids: int) -> None:
        with self.tidb.transaction() as txn:
            for id_ in ids:
                txn.insert(f"shop.{table}", (id_, f"row {id_}"))

    def follow(self) -> None:
        """Run the feed up to the source's present end. Raises its error."""
        run_to_end(self.config, [])

    def choose(self, *tables: str, one: list[str] | None = None) -> None:
        self.config["source"]["tables"] = [*tables]
        self.config["sink"][0].pop("tables", None)
        if one is not None:
            self.config["sink"][0]["tables"] = one

    def rows(self, sink: str, table: str) -> list[int] | None:
        with closing(sqlite3.connect(self.directory / f"{sink}.db")) as copy:
            if not copy.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (f"shop.{table}",)).fetchall():
                return None
            return [row[0] for row in copy.execute(f'SELECT id FROM "shop.{table}" ORDER BY id')]

    def both(self, table: str) -> list[list[int] | None]:
        return [self.rows(sink, table) for sink in ("one", "two")]

    def damage(self, sink: str, table: str) -> None:
        with closing(sqlite3.connect(self.directory / f"{sink}.db")) as copy:
            copy.execute(f'DROP TABLE IF EXISTS "shop.{table}"')
            copy.commit()

    def tables(self) -> dict[str, TableStatus]:
        options = feed_options({**self.config, "until": "now"})
        feed = Feed(options, open_sinks(options))
        feed.start()
        feed.wait()
        if feed.error is not None:
            raise feed.error
        return {one.name: one for one in feed.tables()}


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[Copied]:
    with Tidb(stores=1, tick_seconds=0.02) as tidb:
        tidb.execute("create database shop")
        for name in NAMES[:2]:
            tidb.execute(f"create table shop.{name} (id int primary key, name varchar(40))")
        copied = Copied(tidb, tmp_path)
        copied.put("a", 1)
        copied.put("b", 1)
        copied.follow()
        yield copied


def test_a_table_is_paused_and_resumed(copied: Copied) -> None:
    copied.requests.add(TableRequests(pause=("shop.a",)))
    copied.follow()
    copied.put("a", 2)
    copied.put("b", 2)
    copied.follow()
    assert (copied.both("a"), copied.both("b")) == ([[1], [1]], [[1, 2], [1, 2]])
    assert [one.state for one in copied.tables().values()] == ["paused", "following"]
    copied.requests.add(TableRequests(resume=("shop.a",)))
    copied.follow()
    copied.put("a", 3)
    copied.follow()
    assert copied.both("a") == [[1, 2, 3], [1, 2, 3]]


def test_a_table_that_fails_in_one_target_goes_on_in_the_other(copied: Copied) -> None:
    copied.damage("one", "a")
    with copied.tidb.transaction() as txn:
        txn.insert("shop.a", (2, "x"))
        txn.insert("shop.b", (2, "x"))
    copied.put("b", 3)
    copied.follow()
    assert (copied.both("a"), copied.both("b")) == ([None, [1, 2]], [[1, 2, 3], [1, 2, 3]])
    failed = copied.tables()["shop.a"]
    assert failed.state == "failed"
    assert "isn't there" in failed.error
    copied.requests.add(TableRequests(resume=("shop.a",)))
    copied.follow()
    assert copied.both("a") == [[1, 2], [1, 2]]


def test_patterns_of_a_feed_and_of_a_sink_change(copied: Copied) -> None:
    copied.choose("shop.b", one=["shop.b"])
    copied.put("a", 2)
    copied.follow()
    assert copied.both("a") == [[1], [1]]
    copied.tidb.execute("create table shop.c (id int primary key, name varchar(40))")
    copied.put("c", 1)
    copied.choose("shop.*", one=["shop.b", "shop.c"])
    copied.follow()
    assert (copied.both("a"), copied.both("c")) == ([[1], [1, 2]], [[1], [1]])
    copied.put("c", 2)
    copied.choose("shop.*")
    copied.follow()
    assert (copied.both("a"), copied.both("c")) == ([[1, 2], [1, 2]], [[1, 2], [1, 2]])


def test_a_table_of_new_patterns_that_is_gone_by_the_next_start_matters_to_no_target(copied: Copied) -> None:
    copied.choose("shop.b")
    copied.follow()
    copied.tidb.execute("create table shop.c (id int primary key, name varchar(40))")
    copied.follow()
    copied.put("c", 1)
    copied.tidb.execute("drop table shop.c")
    copied.choose("shop.*")
    copied.follow()
    assert copied.both("c") == [None, None]
    copied.tidb.execute("create table shop.c (id int primary key, name varchar(40))")
    copied.put("c", 7)
    copied.follow()
    assert copied.both("c") == [[7], [7]]


def test_a_feed_that_cannot_load_single_tables_pauses_none(copied: Copied) -> None:
    route = [{"tables": ["shop.a", "shop.b"], "target": "shop.all"}]
    config = {
        "data_dir": str(copied.directory / "merged"),
        "source": {"url": "mysql://127.0.0.1:1", "tables": ["shop.*"]},
        "route": route,
        "sink": [{"url": f"sqlite:///{copied.directory}/merged.db"}],
    }
    options = feed_options(config)
    feed = Feed(options, open_sinks(options))
    with pytest.raises(ConfigError, match=r"^pause: this feed can't load a single table: \[\[route"):
        feed.pause_table("shop.a")


@pytest.mark.parametrize("seed", range(ORDINARY))
def test_a_history(copied: Copied, seed: int) -> None:
    replay(copied, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ORDINARY, 60))
def test_many_histories(copied: Copied, seed: int) -> None:
    replay(copied, seed)


def replay(copied: Copied, seed: int) -> None:
    """Rows, schema changes, requests, new patterns and damage in any order: both copies end as the source."""
    random, tidb = Random(seed), copied.tidb
    present: dict[str, set[int]] = {"a": {1}, "b": {1}}
    next_id = 10
    try:
        for _ in range(ROUNDS):
            for _ in range(random.randint(1, 5)):
                name = random.choice(NAMES)
                if name not in present:
                    tidb.execute(f"create table shop.{name} (id int primary key, name varchar(40))")
                    present[name] = set()
                elif random.random() < 0.15:
                    tidb.execute(f"drop table shop.{name}")
                    del present[name]
                elif random.random() < 0.15 and (free := sorted(set(NAMES) - present.keys())):
                    tidb.execute(f"rename table shop.{name} to shop.{free[0]}")
                    present[free[0]] = present.pop(name)
                else:
                    next_id += 1
                    copied.put(name, next_id)
                    present[name].add(next_id)
            some = tuple(f"shop.{name}" for name in random.sample(NAMES, 2))
            match random.randrange(5):
                case 0:
                    copied.requests.add(TableRequests(pause=some))
                case 1:
                    copied.requests.add(TableRequests(resume=some))
                case 2:
                    copied.requests.add(TableRequests(load_again=some))
                case 3 if present:
                    chosen = random.sample(sorted(present), random.randint(1, len(present)))
                    of_one = random.sample(chosen, random.randint(1, len(chosen)))
                    one = [f"shop.{name}" for name in of_one]
                    copied.choose(*(f"shop.{name}" for name in chosen), one=random.choice([None, one]))
                case 4:
                    copied.damage(random.choice(["one", "two"]), random.choice(NAMES))
            copied.follow()
        copied.choose("shop.*")
        every = tuple(f"shop.{name}" for name in NAMES)
        copied.requests.add(TableRequests(resume=every))
        copied.follow()
        copied.requests.add(TableRequests(load_again=every))  # damage that no change met
        copied.follow()
    finally:
        print(seed, present)
    for name in NAMES:
        wanted = sorted(present[name]) if name in present else None
        assert copied.both(name) == [wanted, wanted], name


def test_rows_that_a_load_reads_are_no_inserts_of_the_log(copied: Copied) -> None:
    copied.requests.add(TableRequests(load_again=("shop.a",)))
    copied.put("a", *range(2, 100))
    copied.put("b", 2)
    counts = copied.tables()
    assert copied.both("a") == [[*range(1, 100)]] * 2
    assert (counts["shop.a"].inserts, counts["shop.a"].rows_loaded) == (0, 99)
    assert (counts["shop.b"].inserts, counts["shop.b"].rows_loaded) == (1, 0)
