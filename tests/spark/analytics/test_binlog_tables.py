"""Tables and rows of a binlog's changes in a store, found by the layouts of the feed."""

from __future__ import annotations

from pathlib import Path

from tidemill.codec.blocks import block_of
from tidemill.codec.mysql.entry import COMMIT, RESULT_ROWS, ROWS, entry_key
from tidemill.codec.mysql.layout_file import LayoutRecord
from tidemill.events import PUT, KvChange, compose_ts
from tidemill.sorter.db.layout import LAYOUTS
from tidemill.sorter.keyspace import SortKeyspace
from tidemill.sorter.run import SortRun
from tidemill.spark.analytics.binlog_tables import UNKNOWN, BinlogTables, TableRows
from tidemill.spark.analytics.facts import window_facts
from tidemill.store.batch import PairBatch
from tidemill.store.store import Store
from tidemill.testing.binlog_events import DELETE, INSERT, INT, UPDATE, rows_event, table_map

NOON = 1_700_000_040_000
RECORDS = [
    LayoutRecord(0, 2, 1, "north: shop.t", table_map(INT)),
    LayoutRecord(1, 2, 1, "south: shop.t", table_map(INT)),
    LayoutRecord(0, 2, 2, "north: shop.people"),
]


def value(number: int) -> bytes:
    return number.to_bytes(4, "little")


def change(ts: int, kind: int, body: bytes, layout: int = 1) -> KvChange:
    return KvChange(ts, ts, PUT, entry_key(1, kind), body, b"", layout)


def event(kind: int, rows: int) -> bytes:
    return rows_event(kind, [[value(number)] for number in range(rows)])


def test_rows_of_events_are_counted_and_belong_to_the_source_of_their_ts() -> None:
    tables = BinlogTables(RECORDS)
    ids = {name: number for number, name in tables.names.items()}
    assert tables.rows_of(change(100, ROWS, event(INSERT, 3))) == TableRows(ids["north: shop.t"], 3)
    assert tables.rows_of(change(101, ROWS, event(DELETE, 5))) == TableRows(ids["south: shop.t"], 5, 5)
    assert tables.rows_of(change(101, ROWS, event(UPDATE, 4))) == TableRows(ids["south: shop.t"], 2)
    packets = b"\2\0\0\1\0017" * 6
    assert tables.rows_of(change(100, RESULT_ROWS, packets, 2)) == TableRows(ids["north: shop.people"], 6)


def test_commits_have_no_rows_and_what_does_not_fit_has_an_unknown_number() -> None:
    tables = BinlogTables(RECORDS)
    assert tables.rows_of(change(100, COMMIT, b"")) == TableRows(UNKNOWN, 0)
    assert tables.rows_of(change(100, ROWS, event(INSERT, 3), layout=9)) == TableRows(UNKNOWN, None)
    broken = tables.rows_of(change(100, ROWS, event(INSERT, 3)[:-1]))
    assert broken.rows is None
    assert tables.names[broken.table] == "north: shop.t"


def test_facts_of_a_binlog_have_its_tables(tmp_path: Path) -> None:
    store = Store(tmp_path / "store-1")
    even = compose_ts(NOON) & ~1
    block = block_of([change(even, ROWS, event(INSERT, 3)), change(even + 1, ROWS, event(INSERT, 40))])
    batch = PairBatch()
    LAYOUTS["block"].put(batch, SortRun([SortKeyspace(1, 1, 0)], block), block)
    store.write(batch)
    store.flush()
    tables = BinlogTables(RECORDS)
    for binlog, expected in (
        (tables, [("north: shop.t", 1, 3), ("south: shop.t", 1, 40)]),
        (None, [("", 2, None)]),
    ):
        rows = [
            row
            for facts in window_facts(tmp_path / "store-1", "window-1", 0, binlog)
            for row in facts.to_pylist()
            if row["kind"] == "block"
        ]
        assert sorted(
            [(tables.names.get(row["table"], ""), row["changes"], row["rows"]) for row in rows]
        ) == expected  # fmt: skip
    store.close()
