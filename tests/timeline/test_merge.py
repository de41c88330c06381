"""Several feeds of this process with one function."""

from __future__ import annotations

import pytest

import tidemill
from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.sentences import sentence
from tidemill.errors import ConfigError, Retryable, SinkError
from tidemill.events import Batch, Checkpoint
from tidemill.sink.merged import MergedSink
from tidemill.sink.python import Acknowledgements
from tidemill.testing.changes import ORDERS, insert, transaction
from tidemill.timeline import Entry, GroupOptions, open_group

OPTIONS = {"queue": GroupOptions(), "barrier": GroupOptions(merge="barrier")}


@pytest.fixture
def shops():
    with Tidb(stores=1) as north, Tidb(stores=1) as south:
        for shop in (north, south):
            shop.execute("create database shop")
            shop.execute("create table shop.orders (id bigint primary key, total bigint)")
        yield {"north": north, "south": south}


def arguments(shops) -> dict[str, dict[str, object]]:
    return {
        name: {"source": f"tikv://{shop.pd_address}", "tables": ["shop.*"], "until": "now"}
        for name, shop in shops.items()
    }


@pytest.mark.parametrize("merge", list(OPTIONS))
def test_two_feeds_come_in_the_order_of_their_times_and_only_once(shops, tmp_path, merge):
    def receive(source: str, item: tidemill.Item) -> None:
        given.append((item.commit_ts, source, [row.after[0] for row in item.rows]))

    given: list[tuple[int, str, list[int]]] = []
    tidemill.merge(receive, arguments(shops), data_dir=tmp_path, options=OPTIONS[merge])
    given.clear()
    for number in range(6):
        with shops["north" if number % 3 else "south"].transaction() as txn:
            txn.insert("shop.orders", {"id": number, "total": 1})
    tidemill.merge(receive, arguments(shops), data_dir=tmp_path, options=OPTIONS[merge])
    assert sorted(ids[0] for _, _, ids in given) == list(range(6))
    assert [ts for ts, _, _ in given] == sorted(ts for ts, _, _ in given)
    assert [ids[0] for _, name, ids in given if name == "south"] == [0, 3]
    given.clear()
    tidemill.merge(receive, arguments(shops), data_dir=tmp_path, options=OPTIONS[merge])
    assert given == []


@pytest.mark.parametrize("merge", list(OPTIONS))
def test_an_error_of_the_function_ends_all_feeds_and_the_item_comes_again(shops, tmp_path, merge):
    with shops["north"].transaction() as txn:
        txn.insert("shop.orders", {"id": 1, "total": 1})

    def fail(source: str, item: tidemill.Item) -> None:
        raise ValueError("no")

    with pytest.raises(SinkError, match="its function raised ValueError"):
        tidemill.merge(fail, arguments(shops), data_dir=tmp_path, options=OPTIONS[merge])
    given: list[str] = []
    refusals = ["once", "twice"]

    def receive(source: str, item: tidemill.Item) -> bool:
        if refusals:
            refusals.pop()
            return False
        given.append(source)
        return True

    tidemill.merge(receive, arguments(shops), data_dir=tmp_path, options=OPTIONS[merge])
    assert (given, refusals) == (["north"], [])


class Memory:
    def load(self):
        return None

    def save(self, checkpoint, length=0):
        pass


def test_explain_names_the_silent_source_the_merge_and_the_policy():
    clock = [0.0]
    options = GroupOptions(on_idle="pass", idle_seconds=30.0)
    group = open_group(["north", "south"], len, options, lambda: clock[0])
    described = "transactions are merged by a queue"
    sink = MergedSink("north", group, Memory(), Acknowledgements(), described=lambda: described)
    sink.open()
    item = transaction(7, insert(ORDERS, 1, "a"))
    sink.write(Batch([item], Checkpoint(7, "p7")))
    clock[0] = 12.5
    assert [sentence(wait) for wait in sink.waits()] == [
        f"sink north has waited 12.5 s for an item of south: {described}"
    ]
    clock[0] = 31.0
    assert sink.waits() == []  # it is idle


def test_a_batch_that_is_taken_in_part_goes_on_where_it_stopped():
    def consume(entries):
        if len(given) == 1 and refusals:
            refusals.pop()
            return 0
        given.extend(entry.ts for _, entry in entries)
        return len(entries)

    given: list[int] = []
    refusals = ["once"]
    group = open_group(["north", "south"], consume, OPTIONS["barrier"], lambda: 0.0)
    group.leave("south")
    sink = MergedSink("north", group, Memory(), Acknowledgements(), described=str)
    sink.open()
    batch = Batch([transaction(ts, insert(ORDERS, ts, "a")) for ts in (7, 8, 9)], Checkpoint(9, "p9"))
    with pytest.raises(Retryable):
        sink.write(batch)
    for _ in range(2):  # the second time after an error of another batch
        sink.write(batch)
    assert given == [7, 8, 9]
    sink.close()
    with pytest.raises(Retryable, match="interrupted"):
        sink.write(Batch([transaction(10, insert(ORDERS, 10, "a"))], Checkpoint(10, "p10")))


def entries(source: str, *times: int) -> list[Entry]:
    return [Entry(ts, "whole", transaction(ts, insert(ORDERS, ts, source))) for ts in times]


def test_a_queue_offers_what_was_refused_until_it_is_taken():
    def consume(ready):
        offered.append([entry.ts for _, entry in ready])
        return len(offered) % 2

    offered: list[list[int]] = []
    group = open_group(["north", "south"], consume, OPTIONS["queue"], lambda: 0.0)
    group.sink("north", entries("north", 7, 9))
    group.interrupt("south")
    group.leave("south")
    assert offered == [[7, 9]]
    group.leave("north")  # nobody is left who would come once more
    assert offered == [[7, 9], [9], [9]]


def test_a_queue_keeps_the_other_sources_entries_when_one_is_resumed_meanwhile():
    def consume(ready):
        given.extend((source, entry.ts) for source, entry in ready[:1])
        if len(given) == 1:
            group.interrupt("north")
            group.resume("north")
        return 1

    given: list[tuple[str, int]] = []
    group = open_group(["north", "south"], consume, OPTIONS["queue"], lambda: 0.0)
    group.sink("north", entries("north", 7, 9))
    group.sink("south", entries("south", 8))
    group.advance("north", 9)
    group.advance("south", 9)
    assert given == [("north", 7), ("south", 8)]


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"a": {"source": "tikv://h:1", "tables": ["s.*"]}}, "two or more"),
        ({"a": {"tables": []}, "b": {}}, "feed a: source: missing"),
        ({"a": {"source": "x", "tables": [], "bogus": 1}, "b": {}}, "bogus: not an argument of open"),
    ],
)
def test_arguments_that_cannot_be_merged_are_named(tmp_path, feeds, message):
    with pytest.raises(ConfigError, match=message):
        tidemill.merge(print, feeds, data_dir=tmp_path)
    for wrong in ({"merge": "zip"}, {"on_idle": "go"}, {"idle_seconds": 0}):
        with pytest.raises(ConfigError, match=rf"options\.{next(iter(wrong))}: "):
            tidemill.merge(print, feeds, data_dir=tmp_path, options=GroupOptions(**wrong))
