"""Filters that a batch takes from a query."""

from __future__ import annotations

from datetime import UTC, datetime

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

from tidemill.events import compose_ts
from tidemill.spark.read.filters import Pushed

TS = ("commit_ts",)
TIME = ("commit_time",)


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


def test_a_time_narrows_to_its_milliseconds() -> None:
    time = datetime(2026, 11, 21, 8, 0, 0, 1500, UTC)
    first, after = (compose_ts(1795248000001 + more) for more in (0, 1))
    for filters, bounds in [
        ([GreaterThan(TIME, time)], (first - 1, None)),
        ([GreaterThanOrEqual(TIME, time), LessThan(TIME, time)], (first - 1, after - 1)),
        ([LessThanOrEqual(TIME, time)], (None, after - 1)),
        ([GreaterThan(TIME, time.replace(tzinfo=None))], (None, None)),
    ]:
        pushed = Pushed()
        assert pushed.push(filters) == filters
        assert (pushed.after, pushed.up_to) == bounds


def test_the_rest_is_left_to_spark() -> None:
    filters = [
        EqualTo(("before", "id"), 3),
        EqualTo(("query",), "x"),
        Not(EqualTo(("op",), "ddl")),
        IsNotNull(("op",)),
    ]
    pushed = Pushed()
    assert pushed.push(filters) == filters
    assert pushed == Pushed()


def test_conditions_on_columns_are_kept_for_a_snapshot() -> None:
    pushed = Pushed()
    filters = [EqualTo(("after", "id"), 3), IsNotNull(("after", "note"))]
    assert pushed.push(filters) == filters
    assert pushed.images == filters
