"""Filters of a query that reduce what a batch reads."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from ...events import Ts
from .commit_time import ts_range


class Pushed(Struct):
    """The values and the range that the filters accept; None: all."""

    schemas: frozenset[str] | None = None
    tables: frozenset[str] | None = None
    operations: frozenset[str] | None = None
    after: Ts | None = None
    """Lower bound of the commit ts, exclusive."""
    up_to: Ts | None = None
    """Upper bound of the commit ts, inclusive."""
    images: list[Filter] = []
    """Filters on columns of a table, which Spark evaluates again."""

    def push(self, filters: Iterable[Filter]) -> list[Filter]:
        """Apply the filters; return those that Spark must still evaluate."""
        return [one for one in filters if not self._take(one)]

    def _take(self, one: Filter) -> bool:
        match getattr(one, "attribute", ()):
            case ("after", _):
                self.images.append(one)
                return False
        match one:
            case EqualTo((name,), value):
                return self._among(name, [value])
            case In((name,), values):
                return self._among(name, values)
            case GreaterThan(("commit_ts",), int(ts)):
                self._above(ts)
            case GreaterThanOrEqual(("commit_ts",), int(ts)):
                self._above(ts - 1)
            case LessThan(("commit_ts",), int(ts)):
                self._below(ts - 1)
            case LessThanOrEqual(("commit_ts",), int(ts)):
                self._below(ts)
            case GreaterThan(("commit_time",), datetime() as time) if time.tzinfo:
                self._above(ts_range(time)[0] - 1)
            case GreaterThanOrEqual(("commit_time",), datetime() as time) if time.tzinfo:
                self._above(ts_range(time)[0] - 1)
            case LessThan(("commit_time",), datetime() as time) if time.tzinfo:
                self._below(ts_range(time)[1] - 1)
            case LessThanOrEqual(("commit_time",), datetime() as time) if time.tzinfo:
                self._below(ts_range(time)[1] - 1)
        return False  # a ts only narrows what is read

    def _among(self, name: str, values: Iterable[Any]) -> bool:
        wanted = frozenset(values)
        match name:
            case "schema":
                self.schemas = _both(self.schemas, wanted)
            case "table":
                self.tables = _both(self.tables, wanted)
            case "op":
                self.operations = _both(self.operations, wanted)
            case "commit_ts" if wanted and all(isinstance(ts, int) for ts in wanted):
                self._above(min(wanted) - 1)
                self._below(max(wanted))
                return False
            case _:
                return False
        return True

    def _above(self, ts: Ts) -> None:
        self.after = ts if self.after is None else max(self.after, ts)

    def _below(self, ts: Ts) -> None:
        self.up_to = ts if self.up_to is None else min(self.up_to, ts)


def _both(one: frozenset[str] | None, other: frozenset[str]) -> frozenset[str]:
    return other if one is None else one & other
