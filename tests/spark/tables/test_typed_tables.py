"""Several tables of one micro-batch, each with its columns."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from tidemill.errors import ConfigError, SourceError
from tidemill.events import AddColumn, Column, Ddl, Table
from tidemill.spark.read.schema import column_type
from tidemill.spark.read.superset import superset
from tidemill.spark.tables import TypedTables
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import ORDERS, PAIRS, delete, insert, transaction, update

from ..test_typed import plain
from .envelopes import envelope

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WIDER = replace(ORDERS, columns=(*ORDERS.columns, Column("more", "int")))


def test_each_table_has_its_rows_with_its_columns(spark: SparkSession) -> None:
    rows = [*kinds.ROWS, kinds.NULLS]
    items = [
        transaction(3, insert(ORDERS, 1, "a"), insert(PAIRS, 1, "b", None)),
        transaction(4, *[update(kinds.KEYED, row, other) for row, other in pairwise(rows)]),
        transaction(5, delete(ORDERS, 1, "a")),
    ]
    tables = TypedTables(envelope(spark, items), invalid_dates="null")
    assert set(tables) == {table.full_name for table in (ORDERS, PAIRS, kinds.KEYED)}
    assert len(tables) == 3
    assert tables.primary_key(ORDERS.full_name) == ("id",)
    orders = tables[ORDERS.full_name].toArrow().to_pylist()
    assert [(row["commit_ts"], row["sequence"], row["op"]) for row in orders] == [
        (3, 0, "insert"),
        (5, 0, "delete"),
    ]
    assert [(row["before"], row["after"]) for row in orders] == [
        (None, {"id": 1, "note": "a"}),
        ({"id": 1, "note": "a"}, None),
    ]
    found = tables[kinds.KEYED.full_name].toArrow().column("after").to_pylist()
    columns = kinds.KEYED.columns
    assert [tuple(row.values()) for row in found] == [
        tuple(plain(c, v) for c, v in zip(columns, row, strict=True)) for row in rows[1:]
    ]


def test_a_column_that_was_added_or_dropped_meanwhile_is_in_all_rows(spark: SparkSession) -> None:
    other = replace(ORDERS, columns=(ORDERS.columns[0], Column("last", "varchar", length=9)))
    items = [
        transaction(3, insert(ORDERS, 1, "a")),
        Ddl(4, 4, "src", "shop", "orders", "ALTER …", (AddColumn(WIDER.columns[2], None),), "log:4"),
        transaction(5, insert(WIDER, 2, "b", 7)),
        transaction(6, insert(other, 3, "c")),
    ]
    found = TypedTables(envelope(spark, items))[ORDERS.full_name].toArrow().column("after").to_pylist()
    assert found == [
        {"id": 1, "last": None, "note": "a", "more": None},
        {"id": 2, "last": None, "note": "b", "more": 7},
        {"id": 3, "last": "c", "note": None, "more": None},
    ]


def test_rows_without_the_exact_columns_are_refused(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="the rows lack the column layout: give all columns of the raw"):
        TypedTables(envelope(spark, []).drop("layout"))


def of(*columns: Column) -> Table:
    return Table("shop", "t", columns)


@pytest.mark.parametrize(
    ("older", "newer", "joined"),
    [
        (Column("a", "int"), Column("a", "bigint"), "bigint"),
        (Column("a", "bigint"), Column("a", "int"), "bigint"),
        (Column("a", "bigint", unsigned=True), Column("a", "tinyint"), "decimal(20,0)"),
        (Column("a", "float"), Column("a", "double"), "double"),
        (Column("a", "varchar", length=3), Column("a", "text"), "string"),
        (
            Column("a", "decimal", length=6, scale=4),
            Column("a", "decimal", length=5, scale=1),
            "decimal(8,4)",
        ),
    ],
)
def test_a_type_holds_the_values_of_all_layouts(older: Column, newer: Column, joined: str) -> None:
    (column,) = superset([of(older), of(newer)]).columns
    assert column_type(column).simpleString() == joined


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (Column("a", "int"), Column("a", "varchar", length=9)),
        (Column("a", "datetime"), Column("a", "timestamp")),
        (Column("a", "decimal", length=38, scale=0), Column("a", "decimal", length=38, scale=2)),
        (Column("a", "int"), Column("a", "double")),
    ],
)
def test_types_that_none_holds_are_an_error(older: Column, newer: Column) -> None:
    with pytest.raises(
        SourceError, match=r"column a of shop\.t was .* and is .* now, and no type holds both"
    ):
        superset([of(older), of(newer)])


def test_rows_of_narrower_types_are_widened(spark: SparkSession) -> None:
    def table(kind: Any, digits: int) -> Table:
        return of(Column("id", kind), Column("price", "decimal", length=digits, scale=digits - 3))

    items = [
        transaction(3, insert(table("int", 5), 1, Decimal("1.25"))),
        transaction(4, insert(table("bigint", 6), 1 << 40, Decimal("1.255"))),
    ]
    frame = TypedTables(envelope(spark, items))["shop.t"]
    assert frame.toArrow().column("after").to_pylist() == [
        {"id": 1, "price": Decimal("1.250")},
        {"id": 1 << 40, "price": Decimal("1.255")},
    ]
