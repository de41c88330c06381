"""A pipeline that ends while a target gives no answer leaves its sink to the thread in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pykka
import pytest

from tidemill.actors import PooledActor, SeededSystem
from tidemill.emulator.sql.sql import Tidb
from tidemill.engine import stages
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import FeedOptions, feed_options
from tidemill.engine.requests import RequestFile, TableRequests
from tidemill.engine.sinks import AbandonedSink
from tidemill.errors import ConfigError
from tidemill.events import Checkpoint
from tidemill.sink import Deliver, Delivery, Reports, SinkFactory, spawn_sink
from tidemill.sink.python import PythonSink
from tidemill.testing.changes import ORDERS, MemoryStore, insert, transaction
from tidemill.testing.progress import eventually, feed_ended

from .held_target import HeldTarget


class Silent(SeededSystem):
    """A system in which some actors get no turn, as if their threads waited in a driver."""

    silent: frozenset[str] = frozenset()

    def step(self) -> bool:
        ready = self._ready.processes
        away = [process for process in ready if process.name in self.silent]
        ready[:] = [process for process in ready if process.name not in self.silent]
        try:
            return super().step()
        finally:
            ready += away


@pytest.mark.parametrize("seed", range(30))
def test_an_abandoned_sink_belongs_to_its_actor_until_that_has_stopped(seed):
    random, target, system = Random(seed), HeldTarget(), Silent(seed)
    target.checkpoint = Checkpoint(0, "0", None, "src")
    sink = target.factory.new()
    delivery = Delivery(sink, sink.open(), "src")
    ref = spawn_sink(system, delivery, Reports(sink.name, system.spawn(PooledActor)))
    items = [transaction(ts, insert(ORDERS, ts, "x")) for ts in range(1, 40)]
    while items and random.random() < 0.9:
        ref.tell(Deliver(tuple(items[:3])))
        del items[:3]
        target.failures = random.choice([0, 0, 1])
        for _ in range(random.randrange(4)):
            system.step()
    system.silent = frozenset({ref.name})
    stopped = ref.stop(block=False)
    with pytest.raises(pykka.Timeout):
        system.stop(timeout=1.0)
    abandoned = AbandonedSink(delivery, stopped)
    told: list[bool] = []
    abandoned.when_ended(lambda: told.append(True))
    assert not abandoned.has_ended(5.0)
    assert (target.user, told) == (sink, [])
    system.silent = frozenset()
    assert abandoned.has_ended(60.0)
    assert (target.user, told) == (None, [True])
    assert sorted(target.rows) == [*range(1, target.checkpoint.ts + 1)]
    again = target.factory.new()
    assert again.open() == target.checkpoint


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=1, tick_seconds=0.02) as made:
        made.execute("create database shop")
        made.execute("create table shop.item (id int primary key, name varchar(40))")
        put(made, 0)
        yield made


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "STOP_SECONDS", 0.1)


def put(tidb: Tidb, *ids: int) -> None:
    for id_ in ids:
        with tidb.transaction() as txn:
            txn.insert("shop.item", (id_, "x"))


def options(tidb: Tidb, path: Path) -> FeedOptions:
    source = {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]}
    copy = {"name": "copy", "url": f"sqlite:///{path}/copy.db"}
    return feed_options({"source": source, "data_dir": str(path / "state"), "sink": [copy]})


def load_again(feed: Feed) -> None:
    """End the pipeline: it starts again to load a table of the other sink.

    A request that is still carried out would take this one in, and the pipeline would go on.
    """
    requests = RequestFile(feed.options.data_dir)
    eventually(lambda: feed.error or not requests.load().load_again)
    requests.add(TableRequests(load_again=("shop.item",)))


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
        put(tidb, 2 * round_ - 1)
        target.until_waiting()
        load_again(feed)
        eventually(lambda: feed.error or feed.status().state == "warning")
        until_abandoned(feed)
        (wait,) = feed.explain()
        assert (wait.stage, wait.kind, wait.on) == ("sink held", "answer", "held target")
        assert target.opened == opened
        target.answer()
        put(tidb, 2 * round_)
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
    put(tidb, 1)
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
    sink = PythonSink("own", print, MemoryStore())
    with pytest.raises(ConfigError, match="sink own: its function returned the same sink twice"):
        SinkFactory(lambda: sink).new()
