"""A pipeline that ends while a target gives no answer leaves its sink to the thread in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine import pipeline
from tidemill.engine.feed import Feed
from tidemill.engine.options import FeedOptions, feed_options, open_sinks
from tidemill.engine.requests import RequestFile
from tidemill.errors import ConfigError
from tidemill.sink import SinkFactory
from tidemill.testing.changes import MemoryStore
from tidemill.testing.progress import eventually, feed_ended

from .held_target import HeldTarget


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=1, tick_seconds=0.02) as made:
        made.execute("create database shop")
        made.execute("create table shop.item (id int primary key, name varchar(40))")
        insert(made, 0)
        yield made


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "STOP_SECONDS", 0.1)


def insert(tidb: Tidb, *ids: int) -> None:
    for id_ in ids:
        with tidb.transaction() as txn:
            txn.insert("shop.item", (id_, "x"))


def options(tidb: Tidb, path: Path) -> FeedOptions:
    source = {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]}
    copy = {"name": "copy", "url": f"sqlite:///{path}/copy.db"}
    return feed_options({"source": source, "data_dir": str(path / "state"), "sink": [copy]})


def load_again(feed: Feed) -> None:
    """End the pipeline: it starts again to load a table of the other sink."""
    RequestFile(feed.options.data_dir).add(load_again=("shop.item",))


def until_abandoned(feed: Feed) -> None:
    eventually(lambda: feed.error or any(wait.kind == "answer" for wait in feed.status().waits))
    assert feed.error is None


@pytest.mark.parametrize("seed", range(4))
def test_no_sink_has_two_threads_whenever_its_target_is_silent(tidb, tmp_path, seed):
    random, target = Random(seed), HeldTarget()
    found = options(tidb, tmp_path)
    feed = Feed(found, [target.factory, *open_sinks(found)])
    feed.start()
    eventually(lambda: feed.error or len(target.rows) == 1)
    for round_ in range(1, 3):
        opened = target.opened
        target.hold(random.choice(["write", "flush"]))
        insert(tidb, 2 * round_ - 1)
        target.until_waiting()
        load_again(feed)
        eventually(lambda: feed.error or feed.status().state == "warning")
        until_abandoned(feed)
        (wait,) = feed.explain()
        assert (wait.stage, wait.kind, wait.on) == ("sink held", "answer", "held target")
        assert target.opened == opened
        target.answer()
        insert(tidb, 2 * round_)
        eventually(lambda: feed.error or len(target.rows) == 1 + 2 * round_)  # noqa: B023
        assert feed.error is None
        assert target.opened > opened
    feed.stop()
    feed_ended(feed)
    assert feed.error is None
    assert target.user is None


def test_a_feed_that_ends_keeps_its_directory_until_its_last_sink_is_closed(tidb, tmp_path):
    target = HeldTarget()
    found = options(tidb, tmp_path)
    feed = Feed(found, [target.factory, *open_sinks(found)])
    feed.start()
    eventually(lambda: feed.error or len(target.rows) == 1)
    target.hold("write")
    insert(tidb, 1)
    target.until_waiting()
    load_again(feed)
    until_abandoned(feed)
    feed.stop()
    feed_ended(feed)
    assert feed.status().state == "stopped"
    with pytest.raises(ConfigError, match="a feed is running in"):
        Feed(found, open_sinks(found)).start()
    target.answer()
    eventually(lambda: target.user is None)
    again = Feed(found, [target.factory, *open_sinks(found)])
    eventually(lambda: starts(again))
    eventually(lambda: again.error or len(target.rows) == 2)
    again.stop()
    feed_ended(again)
    assert again.error is None


def starts(feed: Feed) -> bool:
    try:
        feed.start()
    except ConfigError:
        return False
    return True


def test_a_function_that_returns_the_same_sink_twice_is_refused():
    from tidemill.sink.python import PythonSink

    sink = PythonSink("own", print, MemoryStore())
    with pytest.raises(ConfigError, match="sink own: its function returned the same sink twice"):
        SinkFactory(lambda: sink).new()
