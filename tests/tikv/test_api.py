"""Use of a feed by a program, and errors about the program's mistakes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event, get_ident
from typing import Any

import pytest

import tidemill
from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.progress import eventually, happened


@pytest.fixture(scope="module")
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=1, tick_seconds=0.02) as made:
        made.execute("create database shop")
        made.execute("create table shop.item (id int primary key, name varchar(40))")
        with made.transaction() as txn:
            txn.insert("shop.item", (1, "one"))
            txn.insert("shop.item", (2, "two"))
        yield made


def opened(tidb: Tidb, directory: Path, **more: Any) -> tidemill.OpenFeed[Any]:
    more.setdefault("until", "now")
    return tidemill.open(f"tikv://{tidb.pd_address}", ["shop.item"], data_dir=directory, **more)


def names(items: Sequence[tidemill.Item]) -> list[str]:
    return [row.after[1] for item in items if isinstance(item, tidemill.Transaction) for row in item.rows]


class Collected(tidemill.Sink):
    """A sink of a program's own: adds rows to a list, and so has no checkpoint to begin with."""

    def __init__(
        self,
        name: str = "own",
        fault: Exception | None = None,
        items: list[tidemill.Item] | None = None,
    ) -> None:
        self.name, self.target = name, f"memory:{name}"
        self.items: list[tidemill.Item] = [] if items is None else items
        self._fault = fault
        self._at: tidemill.Checkpoint | None = None

    def open(self) -> tidemill.Checkpoint | None:
        return None

    def write(self, batch: tidemill.Batch) -> None:
        if self._fault is not None:
            raise self._fault
        self.items += batch.items
        self._at = batch.checkpoint

    def flush(self) -> tidemill.Checkpoint | None:
        return self._at

    def has_table(self, schema: str, table: str) -> bool:
        return True

    def close(self) -> None:
        pass


# --- arguments -------------------------------------------------------------------------------------


def test_options_may_be_dataclasses_and_sinks_functions_urls_and_dictionaries(tidb, tmp_path):
    items: list[tidemill.Item] = []
    own, lines = partial(Collected, items=items), tmp_path / "lines"
    with tidemill.open(
        tidemill.TikvOptions(pd=(tidb.pd_address,), region_batch=3),
        ["shop.item"],
        data_dir=tmp_path / "state",
        until="now",
        sorter=tidemill.SorterOptions(memory_bytes=1 << 20),
        sinks=[f"file://{lines}.1", own, {"name": "dictionary", "url": f"file://{lines}.2"}],
    ) as feed:
        for txn in feed:
            assert names([txn]) == ["one", "two"]
            feed.ack(txn)
    assert names(items) == ["one", "two"]
    assert [sink.name for sink in feed.status().sinks] == ["python", "sink-1", "own", "dictionary"]
    assert all('"two"' in Path(f"{lines}.{number}").read_text() for number in (1, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": 5}, "source: int is no URL, and none of MysqlOptions, TikvOptions"),
        ({"source": tidemill.MysqlOptions(port=0)}, "source.port: "),
        (
            {"source": tidemill.MysqlOptions(), "source_options": {"snapshot": False}},
            "source_options: put them",
        ),
        ({"tables": "shop.*"}, "source.tables: expected a list"),
        (
            {"sinks": [Collected()]},
            "no function that returns a Sink: a feed",
        ),
        ({"sinks": [object]}, "no Sink: derive its class from tidemill.Sink"),
        ({"sinks": [{"url": "nowhere:///"}]}, "nowhere"),
        ({"sinks": [partial(Collected, "python")]}, "two sinks"),
        ({"sorter": {"engin": "memory"}}, "did you mean 'engine'"),
        ({"source_options": {"snapshots": True}}, "did you mean 'snapshot'"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(tidemill.ConfigError, match=message):
        tidemill.open(**{"source": "tikv://pd:2379", "tables": ["shop.*"], **arguments})


# --- a program's mistakes --------------------------------------------------------------------------


def test_a_feed_is_read_inside_the_block_that_entered_it(tidb, tmp_path):
    feed = opened(tidb, tmp_path)
    with pytest.raises(tidemill.UsageError, match="inside `with"):
        iter(feed)
    with pytest.raises(tidemill.UsageError, match="inside `async with"):
        feed.batches()
    with feed, pytest.raises(tidemill.UsageError, match="inside `async with"):
        feed.batches()


def test_a_feed_is_entered_once(tidb, tmp_path):
    with opened(tidb, tmp_path) as feed, pytest.raises(tidemill.UsageError, match="entered once"), feed:
        pass
    with pytest.raises(tidemill.UsageError, match="entered once"):
        asyncio.run(feed.__aenter__())


def test_only_what_came_from_the_feed_is_acknowledged(tidb, tmp_path):
    with Tidb(stores=1, tick_seconds=0.02, cluster_id=77) as other:
        other.execute("create database shop")
        other.execute("create table shop.item (id int primary key, name varchar(40))")
        with other.transaction() as txn:
            txn.insert("shop.item", (1, "strange"))
        with opened(other, tmp_path / "other") as feed:
            strange = next(iter(feed))
    with opened(tidb, tmp_path / "own") as feed:
        own = next(iter(feed))
        foreign = "didn't come from this feed"
        later = tidemill.Transaction(own.commit_ts + 1, own.start_ts, own.source, own.rows)
        for wrong, message in [
            (strange, foreign),
            (later, foreign),
            ([own], "of a batch"),
        ]:
            with pytest.raises(tidemill.UsageError, match=message):
                feed.ack(wrong)
        feed.ack(own)
        assert list(feed) == []


# --- its error -------------------------------------------------------------------------------------


def test_leaving_the_block_raises_the_feeds_error_unless_the_body_has_raised(tidb, tmp_path):
    def failed(name: str) -> tidemill.OpenFeed[Any]:
        fault = tidemill.SinkError("the disk is on fire")
        return opened(tidb, tmp_path / name, sinks=[partial(Collected, fault=fault)])

    def entered(name: str, error: Exception | None) -> None:
        with failed(name) as feed:
            eventually(lambda: feed.status().state == "failed")
            if error is not None:
                raise error

    with pytest.raises(tidemill.SinkError, match="on fire"):
        entered("sync", None)
    with pytest.raises(KeyError):
        entered("body", KeyError())

    async def entered_async(name: str, error: Exception | None) -> None:
        async with failed(name) as feed:
            await asyncio.to_thread(eventually, lambda: feed.status().state == "failed")
            if error is not None:
                raise error

    with pytest.raises(tidemill.SinkError, match="on fire"):
        asyncio.run(entered_async("async", None))
    with pytest.raises(KeyError):
        asyncio.run(entered_async("async body", KeyError()))


async def test_leaving_a_block_while_much_waits_is_no_error(tidb, tmp_path):
    tidb.execute("create table if not exists shop.many (id int primary key)")
    with tidb.transaction() as txn:
        for number in range(50):
            txn.insert("shop.many", (number,))
    url = f"tikv://{tidb.pd_address}"
    for number in range(3):
        async with tidemill.open(url, ["shop.many"], data_dir=tmp_path / str(number)) as feed:
            await anext(aiter(feed.batches()))
        assert feed.status().state == "stopped"


# --- schema changes --------------------------------------------------------------------------------


def test_schema_changes_come_too_if_they_are_asked_for(tidb, tmp_path):
    tidb.execute("create table shop.wide (id int primary key)")
    with tidb.transaction() as txn:
        txn.insert("shop.wide", (1,))
    url = f"tikv://{tidb.pd_address}"

    def read(ddl: bool) -> list[Any]:
        found: list[Any] = []
        with tidemill.open(url, ["shop.wide"], data_dir=tmp_path / str(ddl), until="now", ddl=ddl) as feed:
            for item in feed:
                found.append(item.query if isinstance(item, tidemill.Ddl) else item.rows[0].after)
                feed.ack(item)
        return found

    assert (read(True), read(False)) == (["", (1,)], [(1,)])
    tidb.execute("alter table shop.wide add column size int")
    with tidb.transaction() as txn:
        txn.insert("shop.wide", (2, 7))
    assert read(True) == ["alter table shop.wide add column size int", (2, 7)]
    assert read(True) == []
    assert read(False) == [(2, 7)]


# --- follow ----------------------------------------------------------------------------------------


def followed(tidb: Tidb, receive: Any, directory: Path, **more: Any) -> tidemill.FollowHandle:
    return tidemill.follow(receive, f"tikv://{tidb.pd_address}", ["shop.item"], data_dir=directory, **more)


def test_a_followed_feed_runs_to_its_end(tidb, tmp_path):
    found: list[Any] = []
    handle = followed(tidb, found.append, tmp_path, until="now")
    assert names(found) == ["one", "two"]
    assert handle.status().state == "finished"


def test_a_handle_stops_the_feed_and_what_was_received_does_not_come_again(tidb, tmp_path):
    found: list[Any] = []
    arrived = Event()

    def receive(txn: tidemill.Transaction) -> None:
        with pytest.raises(tidemill.UsageError, match="keep the function from running"):
            handle.wait()
        found.append(txn)
        arrived.set()

    with followed(tidb, receive, tmp_path, block=False) as handle:
        happened(arrived)
        assert not handle.wait(0)
        assert handle.explain() is not None
        handle.stop()
        eventually(lambda: handle.wait(0.1))
    assert handle.status().state == "stopped"
    assert names(found) == ["one", "two"]
    followed(tidb, found.append, tmp_path, until="now")
    assert names(found) == ["one", "two"]


def test_leaving_a_handles_block_stops_it_and_raises_its_error(tidb, tmp_path):
    with followed(tidb, lambda txn: None, tmp_path / "well", block=False) as handle:
        eventually(lambda: handle.status().state == "normal")
    assert handle.status().state == "stopped"
    with (
        pytest.raises(tidemill.SinkError, match="ZeroDivisionError"),
        followed(tidb, lambda txn: 1 / 0, tmp_path / "badly", block=False) as handle,
    ):
        eventually(lambda: handle.status().state == "failed")


async def test_an_async_function_runs_in_the_loop_and_the_handle_is_awaited(tidb, tmp_path):
    found: list[Any] = []
    threads = {get_ident()}

    async def receive(txn: tidemill.Transaction) -> None:
        await asyncio.sleep(0)
        threads.add(get_ident())
        found.append(txn)

    handle = followed(tidb, receive, tmp_path, until="now")
    with pytest.raises(tidemill.UsageError, match="await the handle"):
        handle.wait()
    with pytest.raises(tidemill.UsageError, match="await the handle"), handle:
        pass
    await handle
    assert (names(found), len(threads)) == (["one", "two"], 1)
    assert handle.status().state == "finished"


async def test_an_async_function_is_stopped_by_leaving_the_block_and_its_error_is_raised(tidb, tmp_path):
    arrived = asyncio.Event()

    async def receive(txn: tidemill.Transaction) -> None:
        arrived.set()

    async with followed(tidb, receive, tmp_path / "well") as handle:
        await arrived.wait()
    assert handle.status().state == "stopped"

    async def fail(txn: tidemill.Transaction) -> None:
        raise RuntimeError("no more room")

    with pytest.raises(tidemill.SinkError, match="no more room"):
        await followed(tidb, fail, tmp_path / "badly")


async def test_awaiting_a_handle_may_be_cancelled_and_repeated(tidb, tmp_path):
    async def receive(txn: tidemill.Transaction) -> None:
        pass

    handle = followed(tidb, receive, tmp_path)
    awaiting = asyncio.ensure_future(handle)
    await asyncio.sleep(0)
    awaiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await awaiting
    handle.stop()
    await handle
    assert handle.status().state == "stopped"


def test_an_async_function_gets_a_loop_of_its_own_where_none_is_running(tidb, tmp_path):
    class Receiver:
        def __init__(self) -> None:
            self.found: list[tidemill.Item] = []

        async def __call__(self, txn: tidemill.Transaction) -> None:
            await asyncio.sleep(0)
            self.found.append(txn)

    receiver = Receiver()
    followed(tidb, receiver, tmp_path / "blocks", until="now")
    assert names(receiver.found) == ["one", "two"]
    with pytest.raises(tidemill.UsageError, match="needs a running event loop"):
        followed(tidb, receiver, tmp_path / "does not", block=False)


def test_a_function_that_hides_a_coroutine_is_refused(tidb, tmp_path):
    async def receive(txn: tidemill.Transaction) -> None:
        pass

    with pytest.raises(tidemill.UsageError, match="returned an awaitable"):
        followed(tidb, lambda txn: receive(txn), tmp_path, until="now")


def test_a_followed_function_gets_schema_changes_if_asked(tidb, tmp_path):
    found: list[Any] = []
    followed(tidb, found.append, tmp_path, until="now", ddl=True)
    assert [type(item).__name__ for item in found] == ["Ddl", "Transaction"]


# ---------------------------------------------------------------------------------------------------


def test_a_timestamp_is_the_moment_of_a_tso():
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    ts = int(moment.timestamp() * 1000) << 18 | 12_345
    assert tidemill.timestamp(ts) == moment
    assert tidemill.timestamp(ts).tzinfo is UTC
