"""Items as Arrow batches: every value, the order, and what ends a group."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from tidemill.embedded.arrow_encoder import ArrowEncoder
from tidemill.errors import SourceError
from tidemill.events import Column, Ddl, Rows, Table, Transaction
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import ORDERS, PAIRS, delete, insert, transaction, update

from ..codec.runs import runs_of_rows
from ..codec.vectors import load

DDL = Ddl(4, 4, "source", "shop", "orders", "ALTER", ())


def images(data: Any, name: str) -> list[Any]:
    return [None if row is None else tuple(row.values()) for row in data.column(name).to_pylist()]


def told(encoder: ArrowEncoder, *items: Any) -> list[Any]:
    """A batch as its table, its order with the operations, and True if it is the last."""
    found: list[Any] = []
    for batch in encoder.encode(items):
        if isinstance(batch, Ddl):
            found.append(batch.query)
            continue
        batch.data.validate(full=True)
        names = ("commit_ts", "sequence", "op")
        rows = zip(*[batch.data.column(name).to_pylist() for name in names], strict=True)
        found.append((batch.table.name, [*rows], batch.last))
    return found


def without_invalid(column: Column, value: Any) -> Any:
    return None if column.kind in ("date", "datetime", "timestamp") and isinstance(value, str) else value


def test_values_of_every_kind_are_exact() -> None:
    rows = [*kinds.ROWS, kinds.NULLS]
    item = transaction(3, *[update(kinds.KEYED, row, other) for row, other in pairwise(rows)])
    (batch,) = ArrowEncoder("null").encode([item])
    assert not isinstance(batch, Ddl)
    batch.data.validate(full=True)
    for name, wanted in (("before", rows[:-1]), ("after", rows[1:])):
        expected = [
            tuple(without_invalid(c, v) for c, v in zip(kinds.KEYED.columns, row, strict=True))
            for row in wanted
        ]
        assert images(batch.data, name) == expected


def test_a_date_that_no_calendar_has_is_an_error_or_null() -> None:
    table = Table("shop", "t", (Column("d", "date"),))
    item = transaction(3, insert(table, "0000-00-00"))
    with pytest.raises(
        SourceError, match=r"column d of shop\.t holds '0000-00-00', which is no date in Arrow"
    ):
        [*ArrowEncoder().encode([item])]
    (batch,) = ArrowEncoder("null").encode([item])
    assert not isinstance(batch, Ddl)
    assert images(batch.data, "after") == [(None,)]


def test_a_value_that_its_type_does_not_hold_is_named() -> None:
    table = Table("shop", "t", (Column("n", "decimal", length=3, scale=1),))
    with pytest.raises(
        SourceError, match=r"column n of shop.t has a value that decimal128\(3, 1\) can't hold"
    ):
        [*ArrowEncoder().encode([transaction(3, insert(table, Decimal("1234.5")))])]


@pytest.mark.parametrize("op", [23, 24, 25])
def test_rows_of_a_binlog_are_the_same_as_columns_and_by_tuples(op: int) -> None:
    count = 0
    for vector in load():
        runs = runs_of_rows(vector, op)
        changes = [change for run in runs_of_rows(vector, op) for change in run.changes()]
        raw, plain = Transaction(7, 7, "s", Rows(runs)), Transaction(7, 7, "s", changes)
        batches = [[*ArrowEncoder("null").encode([item])] for item in (raw, plain)]
        (one,), (other,) = batches
        assert not isinstance(one, Ddl)
        assert not isinstance(other, Ddl)
        assert one.data.equals(other.data)
        count += 1
    assert count


def test_batches_are_of_a_table_each_and_only_the_last_one_ends_transactions() -> None:
    encoder = ArrowEncoder()
    first = transaction(
        2, insert(ORDERS, 1, "a"), insert(PAIRS, 1, "x", 2), update(ORDERS, (1, "a"), (1, "b"))
    )
    second = transaction(3, delete(ORDERS, 1, "b"))
    assert told(encoder, first, second) == [
        ("orders", [(2, 0, "insert"), (2, 2, "update"), (3, 0, "delete")], False),
        ("pairs", [(2, 1, "insert")], True),
    ]


def test_images_are_null_where_there_are_none() -> None:
    item = transaction(2, insert(ORDERS, 1, "a"), update(ORDERS, (1, "a"), (2, "b")), delete(ORDERS, 2, "b"))
    (batch,) = ArrowEncoder().encode([item])
    assert not isinstance(batch, Ddl)
    assert images(batch.data, "before") == [None, (1, "a"), (2, "b")]
    assert images(batch.data, "after") == [(1, "a"), (2, "b"), None]


def test_a_transaction_in_parts_ends_with_its_last_batch() -> None:
    encoder = ArrowEncoder()
    part = replace(transaction(2, insert(ORDERS, 1, "a")), last=False, position="")
    assert told(encoder, part) == [("orders", [(2, 0, "insert")], False)]
    assert told(encoder, part) == [("orders", [(2, 1, "insert")], False)]
    assert told(encoder, transaction(2)) == [("orders", [], True)]
    assert told(encoder, part) == [("orders", [(2, 2, "insert")], False)]
    following = transaction(3, insert(PAIRS, 1, "x", 2))
    assert told(encoder, transaction(2), following) == [("pairs", [(3, 0, "insert")], True)]


def test_a_schema_change_comes_between_whole_transactions() -> None:
    before, after = transaction(3, insert(ORDERS, 1, "a")), transaction(5, insert(ORDERS, 2, "a"))
    assert told(ArrowEncoder(), before, DDL, after) == [
        ("orders", [(3, 0, "insert")], True),
        "ALTER",
        ("orders", [(5, 0, "insert")], True),
    ]
