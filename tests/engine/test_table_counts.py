"""Counts of rows by table: of what a sink gets, once."""

from __future__ import annotations

import pytest

from tidemill.chain.stage import Element, StageContext
from tidemill.engine.table_counts import TableCounts
from tidemill.events import Checkpoint, Chunk, Column, Op, RowChange, Table, TableProgress, Transaction

T, U = (Table("shop", name, (Column("id", "int"),), (0,)) for name in "tu")
CONTEXT = StageContext(feed="f", sink="a", checkpoint=Checkpoint(0, ""), now=lambda: 0.0, seek=lambda _: None)


def transaction(
    ts: int, *tables: Table, op: Op = "insert", last: bool = True, chunk: bool = False
) -> Element:
    rows = [
        RowChange(ts, ts, table, op, None if op == "insert" else (n,), None if op == "delete" else (n,))
        for n, table in enumerate(tables)
    ]
    mark = Chunk("shop.t", TableProgress((9,))) if chunk else None
    return Transaction(ts, ts, "here", rows, f"log:{ts}" if last else "", last, mark)


@pytest.fixture
def counts() -> TableCounts:
    made = TableCounts(lambda _: None)
    made.open(CONTEXT)
    return made


def told(counts: TableCounts) -> dict[str, list[int]]:
    return {name: [*one.changes.values(), one.loaded] for name, one in counts.tallies.items()}


def test_changes_and_loaded_rows_are_counted_by_table(counts):
    batch = [
        transaction(1, T, T, U),
        transaction(2, U, op="update"),
        transaction(3, T, op="delete"),
        transaction(4, T, T, T, chunk=True),
    ]
    assert counts.apply(batch) is batch
    assert told(counts) == {"shop.t": [2, 0, 1, 3], "shop.u": [1, 1, 0, 0]}


def test_what_comes_again_after_a_restart_is_counted_once(counts):
    counts.apply([transaction(1, T), transaction(2, T), transaction(3, T, T, last=False)])
    assert told(counts) == {"shop.t": [2, 0, 0, 0]}, "the transaction hasn't ended"
    counts.open(CONTEXT)
    counts.apply([transaction(2, T), transaction(3, T, T, last=False), transaction(3, T), transaction(4, T)])
    assert told(counts) == {"shop.t": [6, 0, 0, 0]}


def test_transactions_of_the_same_ts_are_all_counted(counts):
    counts.apply([transaction(1, T), transaction(1, T, U), transaction(1, U, last=False), transaction(1, U)])
    assert told(counts) == {"shop.t": [2, 0, 0, 0], "shop.u": [3, 0, 0, 0]}


def test_a_table_that_the_sink_is_not_given_is_not_counted():
    learned: list[str] = []
    counts = TableCounts(learned.append)
    counts.wants = lambda name: name == "shop.u"
    counts.apply([transaction(1, T, U)])
    assert told(counts) == {"shop.u": [1, 0, 0, 0]}
    assert learned == ["shop.u"]
