"""Conditions of a query on a table's columns, in SQL and as a range of keys.

Spark checks every condition again: those in SQL must keep all rows that it accepts, and may keep others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

from ...codec.mysql.tokens import quoted
from ...events import INTEGERS, TEXTS, WITH_DATE, Column, KeyRange, Table

IMAGE: Final = "after"

_COMPARISONS: Final[dict[type[Filter], str]] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
_NULLS: Final[dict[type[Filter], str]] = {IsNull: "IS NULL", IsNotNull: "IS NOT NULL"}
_ORDERED: Final[dict[str, type]] = {
    **dict.fromkeys(INTEGERS, int),
    "decimal": Decimal,
}
_DATES: Final = WITH_DATE
"""Kinds whose invalid values may be null in Spark, and aren't on the server."""
_EXACT_DIGITS: Final = 27
"""Digits of a decimal that PySpark surely passes on exactly: it rounds those with more than 28 to 28."""
_EQUAL: Final[dict[str, type]] = {**_ORDERED, **dict.fromkeys(TEXTS, str)}
"""Kinds with the type of their values. Texts are compared for equality only: a collation has an order of its
own, in which equal texts are equal, too."""


class RowFilter(NamedTuple):
    """A condition on a column."""

    column: str
    operator: str
    values: tuple[Any, ...] = ()

    def sql(self, escape: Callable[[object], str]) -> str:
        """Return the condition; `escape` is the session's."""
        name = quoted(self.column)
        if not self.values:
            return f"{name} {self.operator}"
        values = ", ".join(escape(value) for value in self.values)
        return f"{name} IN ({values})" if self.operator == "IN" else f"{name} {self.operator} {values}"


class IntegerRange(NamedTuple):
    """Integers above `after` and up to `up_to`; None: without a bound."""

    after: int | None = None
    up_to: int | None = None

    @property
    def is_empty(self) -> bool:
        return self.after is not None and self.up_to is not None and self.after >= self.up_to

    def has(self, value: int) -> bool:
        return (self.after is None or value > self.after) and (self.up_to is None or value <= self.up_to)

    @property
    def keys(self) -> KeyRange:
        """The keys whose first part is in this range."""
        after, up_to = [None if bound is None else (bound,) for bound in self]
        return KeyRange(after, up_to)

    def narrowed(self, one: RowFilter) -> IntegerRange:
        """Return the part of the range that the condition on the key accepts."""
        match one.operator:
            case "=" | "IN":
                return self._within(min(one.values) - 1, max(one.values))
            case ">":
                return self._within(one.values[0], None)
            case ">=":
                return self._within(one.values[0] - 1, None)
            case "<":
                return self._within(None, one.values[0] - 1)
            case "<=":
                return self._within(None, one.values[0])
        return self

    def _within(self, after: int | None, up_to: int | None) -> IntegerRange:
        lows = [low for low in (self.after, after) if low is not None]
        highs = [high for high in (self.up_to, up_to) if high is not None]
        return IntegerRange(max(lows, default=None), min(highs, default=None))


def row_filters(table: Table, filters: Iterable[Filter]) -> list[RowFilter]:
    """Return the conditions on columns of `table` that the server can check as Spark does."""
    columns: dict[object, Column] = {(IMAGE, column.name): column for column in table.columns}
    conditions = []
    for one in filters:
        column = columns.get(getattr(one, "attribute", None))
        if column is not None and (condition := _condition(column, one)) is not None:
            conditions.append(condition)
    return conditions


def key_range(table: Table, filters: Iterable[RowFilter]) -> IntegerRange:
    """Return the range of the first key column that the conditions accept, if that is an integer."""
    column = table.columns[table.key[0]]
    key_range_ = IntegerRange()
    for one in filters:
        if one.column == column.name and column.kind in INTEGERS and one.values:
            key_range_ = key_range_.narrowed(one)
    return key_range_


def _condition(column: Column, one: Filter) -> RowFilter | None:
    kind = type(one)
    if kind is IsNull and column.kind in _DATES:
        return None
    if kind in _NULLS:
        return RowFilter(column.name, _NULLS[kind])
    if isinstance(one, In):
        operator, operands = "IN", [value for value in one.value if value is not None]
    elif kind in _COMPARISONS:
        operator, operands = _COMPARISONS[kind], [one.value]  # type: ignore[attr-defined]
    else:
        return None
    accepted = (_EQUAL if operator in ("=", "IN") else _ORDERED).get(column.kind)
    values = tuple([int(value) if _is_whole(column, value) else value for value in operands])
    if not values or any(type(value) is not accepted or _may_be_rounded(value) for value in values):
        return None
    return RowFilter(column.name, operator, values)


def _is_whole(column: Column, value: object) -> bool:
    """True for an integer that Spark has as a decimal: of an unsigned BIGINT."""
    return _EQUAL.get(column.kind) is int and type(value) is Decimal and value == int(value)


def _may_be_rounded(value: object) -> bool:
    return isinstance(value, Decimal) and len(value.as_tuple().digits) > _EXACT_DIGITS
