"""Changes of one table, with its columns."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from tidemill.errors import SourceError
from tidemill.events import ChangeColumn, Column, CreateTable, Ddl, Rows, Table, Transaction, TruncateTable
from tidemill.spark.read.parts import Part
from tidemill.spark.read.pick import Pick
from tidemill.spark.read.typed import TypedEncoder
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import ORDERS, PAIRS, delete, insert, transaction, update

from ..codec.runs import runs_of_rows
from ..codec.vectors import load

DATES = ("date", "datetime", "timestamp")


def plain(column: Column, value: Any) -> Any:
    """As Arrow gives it back."""
    if column.kind in DATES and isinstance(value, str):
        return None
    if column.kind == "decimal" and column.length > 38 and value is not None:
        return f"{value:.{column.scale}f}"
    unsigned_64 = (column.kind == "bigint" and column.unsigned) or (
        column.kind == "bit" and column.length == 64
    )
    return Decimal(value) if unsigned_64 and value is not None else value


def test_values_of_every_kind_are_exact() -> None:
    rows = [*kinds.ROWS, kinds.NULLS]
    item = transaction(3, *[update(kinds.KEYED, row, other) for row, other in pairwise(rows)])
    batch = TypedEncoder(kinds.KEYED, Pick(), invalid_dates="null").encode([item])
    batch.validate(full=True)
    columns = kinds.KEYED.columns
    for name, images in (("before", rows[:-1]), ("after", rows[1:])):
        found = [tuple(row.values()) for row in batch.column(name).to_pylist()]
        wanted = [tuple(plain(c, v) for c, v in zip(columns, row, strict=True)) for row in images]
        assert found == wanted


@pytest.mark.parametrize("kind", DATES)
def test_a_date_that_no_calendar_has_is_an_error_by_default(kind: Any) -> None:
    table = Table("shop", "t", (Column("d", kind),))
    with pytest.raises(
        SourceError, match=f"column d of shop.t holds '0000-00-00', which is no {kind} in Spark"
    ):
        TypedEncoder(table, Pick()).encode([transaction(3, insert(table, "0000-00-00"))])


def test_images_are_null_where_there_are_none() -> None:
    items = [transaction(3, insert(ORDERS, 1, "a"), delete(ORDERS, 1, "a")), transaction(4)]
    rows = TypedEncoder(ORDERS, Pick()).encode(items).to_pylist()
    row = {"id": 1, "note": "a"}
    assert [(r["op"], r["before"], r["after"]) for r in rows] == [
        ("insert", None, row),
        ("delete", row, None),
    ]
    assert [r["sequence"] for r in rows] == [0, 1]


def test_older_layouts_have_null_where_they_lack_a_column() -> None:
    wider = Table("shop", "orders", (Column("more", "int"), *ORDERS.columns))
    encoder = TypedEncoder(wider, Pick())
    items = [transaction(3, insert(ORDERS, 1, "a")), transaction(4, insert(wider, 7, 2, "b"))]
    found = encoder.encode(items).column("after").to_pylist()
    assert found == [{"more": None, "id": 1, "note": "a"}, {"more": 7, "id": 2, "note": "b"}]


def test_a_column_that_was_of_another_type_is_an_error() -> None:
    other = Table("shop", "orders", (ORDERS.columns[0], Column("note", "int")))
    with pytest.raises(SourceError, match=r"column note of shop\.orders was int and is varchar now"):
        TypedEncoder(ORDERS, Pick()).encode([transaction(3, insert(other, 1, 2))])


def ddl(query: str, refusal: str) -> Ddl:
    return Ddl(3, 3, "src", "shop", "orders", query, (), "log:3", refusal)


def test_a_change_that_rows_do_not_tell_is_an_error_unless_it_is_not_asked_for() -> None:
    items = [ddl("TRUNCATE TABLE orders", "can't be followed")]
    with pytest.raises(
        SourceError, match=r"shop\.orders was changed .* don't tell: TRUNCATE TABLE orders; read"
    ):
        TypedEncoder(ORDERS, Pick()).encode(items)
    assert TypedEncoder(ORDERS, Pick(operations=["insert"])).encode(items).num_rows == 0


@pytest.mark.parametrize("action", [TruncateTable(), ChangeColumn("note", Column("note", "int"))])
def test_a_change_of_all_rows_is_not_told_by_rows(action) -> None:
    items = [replace(ddl("ALTER …", ""), actions=(action,))]
    with pytest.raises(SourceError, match=r"shop\.orders was changed .* don't tell: ALTER …; read"):
        TypedEncoder(ORDERS, Pick()).encode(items)


def test_other_schema_changes_leave_nothing() -> None:
    made = Ddl(2, 2, "src", "shop", "orders", "", (CreateTable(ORDERS),), "log:2")
    items = [made, ddl("CREATE TABLE orders (id int)", "can't be followed"), ddl("ALTER …", "")]
    assert TypedEncoder(ORDERS, Pick()).encode(items).num_rows == 0


def test_rows_that_are_not_picked_keep_the_others_numbers() -> None:
    pick = Pick(Part(tables=frozenset({"orders"})), ["insert"])
    encoder = TypedEncoder(ORDERS, pick)
    pieces = [
        transaction(3, insert(PAIRS, 1, "b", None), insert(ORDERS, 1, "a"), last=False),
        transaction(3, delete(ORDERS, 9, None), insert(ORDERS, 2, "c")),
    ]
    assert [encoder.encode([p]).column("sequence").to_pylist() for p in pieces] == [[1], [3]]


@pytest.mark.parametrize("op", [23, 24, 25])
def test_bytes_and_rows_make_the_same_batch(op: int) -> None:
    for vector in load():
        runs = runs_of_rows(vector, op)
        encoders = [TypedEncoder(runs[0].table, Pick(), invalid_dates="null") for _ in range(2)]
        whole = Transaction(7, 7, "source", Rows(runs), "log:7")
        decoded = Transaction(
            7, 7, "source", [change for run in runs_of_rows(vector, op) for change in run.changes()]
        )
        from_bytes, from_rows = encoders[0].encode([whole]), encoders[1].encode([decoded])
        from_bytes.validate(full=True)
        assert repr(from_bytes.to_pylist()) == repr(from_rows.to_pylist())
