"""Filters that a batch takes from a query."""

from __future__ import annotations

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from tidemill.spark.read.filters import Pushed

TS = ("commit_ts",)


def test_names_and_operations_are_taken_for_good() -> None:
    pushed = Pushed()
    assert (
        pushed.push([EqualTo(("table",), "a"), In(("op",), ("insert", "delete")), EqualTo(("schema",), "s")])
        == []
    )
    assert pushed == Pushed(frozenset({"s"}), frozenset({"a"}), frozenset({"insert", "delete"}))


def test_several_of_one_column_hold_together() -> None:
    pushed = Pushed()
    pushed.push([In(("op",), ("insert", "delete")), In(("op",), ("delete", "update"))])
    assert pushed.operations == {"delete"}


def test_a_ts_narrows_and_stays_for_spark_to_check() -> None:
    for filters, bounds in [
        ([GreaterThan(TS, 5), LessThan(TS, 9)], (5, 8)),
        ([GreaterThanOrEqual(TS, 5), LessThanOrEqual(TS, 9), GreaterThan(TS, 2)], (4, 9)),
        ([In(TS, (7, 4))], (3, 7)),
        ([EqualTo(TS, 7)], (6, 7)),
    ]:
        pushed = Pushed()
        assert pushed.push(filters) == filters
        assert (pushed.after, pushed.up_to) == bounds


def test_the_rest_is_left_to_spark() -> None:
    filters = [
        EqualTo(("after", "id"), 3),
        EqualTo(("query",), "x"),
        Not(EqualTo(("op",), "ddl")),
        IsNotNull(("op",)),
    ]
    pushed = Pushed()
    assert pushed.push(filters) == filters
    assert pushed == Pushed()
