"""Tables of one sink, and a stage that has its source read again, in whole feeds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError
from tidemill.testing.progress import eventually

from ..chain.stages import HoldTable


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=1, tick_seconds=0.02) as made:
        made.execute("create database shop")
        for name in ("item", "note"):
            made.execute(f"create table shop.{name} (id int primary key, name varchar(40))")
            insert(made, name, 1)
        yield made


def insert(tidb: Tidb, table: str, *ids: int) -> None:
    for id_ in ids:
        with tidb.transaction() as txn:
            txn.insert(f"shop.{table}", (id_, "x"))


def options(tidb: Tidb, path: Path, **sinks: dict[str, Any]) -> Any:
    sections = [{"name": name, "url": f"sqlite:///{path}/{name}.db", **more} for name, more in sinks.items()]
    source = {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]}
    return feed_options({"source": source, "data_dir": str(path / "state"), "sink": sections})


def rows(path: Path, sink: str) -> dict[str, list[int]]:
    """The ids in each table of a sink's copy."""
    with closing(sqlite3.connect(path / f"{sink}.db")) as copy:
        names = [name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name.removeprefix("shop."): [i for (i,) in copy.execute(f'SELECT id FROM "{name}" ORDER BY id')]
            for name in names
            if "tidemill" not in name
        }


def finish(found: Any, tidb: Tidb) -> None:
    feed = Feed(found, open_sinks(found))
    now = tidb.tso()
    feed.start()
    eventually(lambda: feed.error or all(sink.ts >= now and not sink.loading for sink in feed.status().sinks))
    feed.stop()
    feed.wait()
    if feed.error is not None:
        raise feed.error


def test_a_sink_gets_its_own_tables_in_the_snapshot_and_after_it(tidb, tmp_path):
    found = options(tidb, tmp_path, all={}, some={"tables": ["shop.note"]})
    finish(found, tidb)
    assert rows(tmp_path, "some") == {"note": [1]}
    insert(tidb, "item", 2)
    insert(tidb, "note", 2, 3)
    finish(found, tidb)
    assert rows(tmp_path, "all") == {"item": [1, 2], "note": [1, 2, 3]}
    assert rows(tmp_path, "some") == {"note": [1, 2, 3]}


def test_a_pattern_of_a_sink_that_matches_no_table_of_the_feed_is_an_error(tidb, tmp_path):
    found = options(tidb, tmp_path, some={"tables": ["shop.item", "shop.nope"]})
    with pytest.raises(ConfigError, match=r"sink some: tables: no table of this feed matches 'shop\.nope'"):
        finish(found, tidb)


def test_a_sink_is_given_another_table_which_is_loaded(tidb, tmp_path):
    finish(options(tidb, tmp_path, some={"tables": ["shop.note"]}), tidb)
    insert(tidb, "item", 2)
    insert(tidb, "note", 2)
    finish(options(tidb, tmp_path, some={"tables": ["shop.note", "shop.item"]}), tidb)
    assert rows(tmp_path, "some") == {"note": [1, 2], "item": [1, 2]}


def test_a_stage_that_forgot_what_it_held_reads_it_again(tidb, tmp_path):
    hold = HoldTable("shop.note", 2)
    found = options(tidb, tmp_path, copy={"tables": ["shop.*"]})
    finish(found, tidb)
    hold.holding = True
    feed = Feed(found, open_sinks(found), stages={"copy": [hold]})
    feed.start()
    insert(tidb, "note", *range(2, 8))
    insert(tidb, "item", *range(2, 8))
    eventually(lambda: feed.error or rows(tmp_path, "copy")["item"] == [*range(1, 8)])
    assert rows(tmp_path, "copy")["note"] == [1]
    hold.holding = False
    eventually(lambda: feed.error or rows(tmp_path, "copy")["note"] == [*range(1, 8)])
    feed.stop()
    feed.wait()
    assert feed.error is None
    assert hold.seeks == 1
