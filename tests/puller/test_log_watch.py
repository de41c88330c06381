"""The log's changes that are kept while chunks of tables are read."""

from __future__ import annotations

import pytest

from tidemill.codec.mysql.entry import DDL, ROWS, Query, encode_statement
from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.mysql.position import Position
from tidemill.events import Column, Table
from tidemill.puller.mysql.commit_clock import CommitClock
from tidemill.puller.mysql.log_watch import LogWatch, WatchedEntry
from tidemill.puller.mysql.transactions import Transactions

HERE = Position("log.000001", 4)
T = ("shop", "t")


class Bench:
    """Two tables and their changes, on the way to a watch of the first one."""

    def __init__(self, max_bytes: int = 1_000) -> None:
        layouts = Layouts()
        self.layouts = {
            name: layouts.add_table(Table("shop", name, (Column("id", "int"),), (0,))) for name in "tu"
        }
        self.watch = LogWatch(layouts, max_bytes)
        self.watch.move(HERE)
        self.watch.add(T)
        self.transactions = Transactions(CommitClock(), 1 << 20, self.watch)

    def log(self, *words: str, ends: bool = True) -> None:
        out = self.transactions
        out.begin()
        for word in words:
            match word.split("=", 1):
                case "save", name:
                    out.save(name)
                case "back", name:
                    out.roll_back_to(name)
                case "!", statement:
                    out.add(DDL, encode_statement(Query("shop", statement, 0.0)))
                case table, rows:
                    out.add(ROWS, rows.encode(), self.layouts[table])
        if ends:
            out.commit("log.000001:9")
        self.watch.move(HERE)

    def since(self, count: int = 0) -> list[str] | None:
        entries = self.watch.since(count, T)
        return None if entries is None else [entry.value.decode() for entry in entries]


def test_the_changes_of_a_table_are_kept_once_they_are_committed() -> None:
    bench = Bench()
    bench.log("t=1", "u=2", "t=3")
    bench.log("t=4", ends=False)
    assert bench.since() == ["1", "3"]
    bench.transactions.interrupt()
    bench.log("t=5", "save=a", "t=6", "back=a", "t=7")
    assert bench.since() == ["1", "3", "5", "7"]
    assert bench.since(2) == ["5", "7"]
    assert bench.watch.mark.kept == 4


def test_changes_that_are_rolled_back_or_prepared_are_not_kept() -> None:
    bench = Bench()
    bench.log("t=1", ends=False)
    bench.transactions.abandon("log.000001:9")
    bench.log("t=2", ends=False)
    withdrawn = bench.transactions.withdraw()
    bench.transactions.commit("log.000001:9")
    assert bench.since() == []
    bench.transactions.begin()
    bench.transactions.restore(withdrawn)
    bench.transactions.commit("log.000001:9")
    assert bench.since() == ["2"]


@pytest.mark.parametrize(
    ("statement", "concerns"),
    [
        ("ALTER TABLE t ADD x INT", True),
        ("rename table `x` to shop.`T`", True),
        ("DROP DATABASE shop", True),
        ("CREATE TABLE shop.u (id INT)", False),
        ("ANALYZE x", False),
    ],
)
def test_a_statement_that_may_concern_the_table_voids_the_changes(statement: str, concerns: bool) -> None:
    bench = Bench()
    bench.log("t=1")
    bench.log(f"!={statement}")
    assert (bench.since() is None) == concerns
    assert bench.since(2) == []


def test_changes_that_nothing_needs_are_forgotten() -> None:
    bench = Bench()
    bench.log("t=1", "t=2")
    bench.watch.forget(1)
    assert bench.since(1) == ["2"]
    assert bench.watch.bytes == 1


@pytest.mark.parametrize("transactions", [["t=" + "x" * 1_001], ["t=" + "x" * 600] * 2], ids=["one", "two"])
def test_too_many_changes_are_dropped_and_missed(transactions: list[str]) -> None:
    bench = Bench(max_bytes=1_000)
    for words in transactions:
        bench.log(words, "u=1")
    assert bench.since() is None
    assert bench.watch.bytes == 0
    mark = bench.watch.mark.kept
    for _ in range(3):
        bench.log("t=" + "y" * 300)
    assert bench.since(mark) == ["y" * 300] * 3


def test_an_entry_of_a_statement_is_never_dropped() -> None:
    entry = WatchedEntry(DDL, b"statement", 0)
    assert entry.without_rows() is entry
