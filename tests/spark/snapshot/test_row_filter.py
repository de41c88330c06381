"""Conditions of a query in SQL, and as a range of keys."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from tidemill.events import Column, Table
from tidemill.spark.snapshot.row_filter import IntegerRange, key_range, row_filters

COLUMNS = (
    Column("id", "bigint", unsigned=True),
    Column("note", "varchar", length=9),
    Column("price", "decimal", length=6, scale=2),
    Column("part", "double"),
    Column("day", "date"),
    Column("exact", "decimal", length=38, scale=30),
)
ITEM = Table("shop", "item", COLUMNS, (0,))
ID, NOTE, PRICE, PART, DAY, EXACT = (("after", column.name) for column in COLUMNS)


def sql(*filters: Filter) -> list[str]:
    return [one.sql(repr) for one in row_filters(ITEM, filters)]


def test_conditions_that_the_server_checks_as_spark_does_are_sql() -> None:
    assert sql(
        EqualTo(ID, Decimal(5)),
        GreaterThanOrEqual(ID, Decimal(3)),
        In(NOTE, ("a", None, "b")),
        LessThan(PRICE, Decimal("1.50")),
        IsNotNull(PART),
        IsNull(NOTE),
        IsNotNull(DAY),
        GreaterThan(EXACT, Decimal("0.123456789012345678901234567")),
    ) == [
        "`id` = 5",
        "`id` >= 3",
        "`note` IN ('a', 'b')",
        "`price` < Decimal('1.50')",
        "`part` IS NOT NULL",
        "`note` IS NULL",
        "`day` IS NOT NULL",
        "`exact` > Decimal('0.123456789012345678901234567')",
    ]


@pytest.mark.parametrize(
    "one",
    [
        LessThan(NOTE, "b"),
        EqualTo(PART, 1.5),
        EqualTo(PRICE, "1.50"),
        EqualTo(ID, Decimal("5.5")),
        EqualTo(ID, True),
        EqualTo(("after", "other"), 5),
        EqualTo(("before", "id"), 5),
        EqualNullSafe(ID, 5),
        Not(EqualTo(ID, 5)),
        In(NOTE, (None,)),
        IsNull(DAY),  # also of 0000-00-00, which is null in Spark
        GreaterThan(EXACT, Decimal("0.1234567890123456789012345678")),  # 28 digits: PySpark may have rounded
    ],
    ids=repr,
)
def test_others_are_left_to_spark(one: Filter) -> None:
    assert sql(one) == []


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ([], (None, None)),
        ([EqualTo(ID, 5)], (4, 5)),
        ([In(ID, (7, 3))], (2, 7)),
        ([GreaterThan(ID, 3), LessThan(ID, 9)], (3, 8)),
        ([GreaterThanOrEqual(ID, 3), LessThanOrEqual(ID, 9), GreaterThan(ID, 1)], (2, 9)),
        ([EqualTo(NOTE, "a"), IsNotNull(ID)], (None, None)),
    ],
)
def test_conditions_on_the_key_are_a_range(filters: list[Any], found: tuple[Any, Any]) -> None:
    assert key_range(ITEM, row_filters(ITEM, filters)) == IntegerRange(*found)


def test_a_range_has_the_keys_between_its_bounds() -> None:
    assert [key for key in range(9) if IntegerRange(3, 5).has(key)] == [4, 5]
    assert IntegerRange().has(0)
    assert [IntegerRange(*found).is_empty for found in ((5, 5), (5, 4), (4, 5), (None, 5))] == [
        True,
        True,
        False,
        False,
    ]
