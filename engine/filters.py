"""Filters of a feed's events: the `[[filter]]` sections of a feed.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from ..chain.selection.row_filter import RowFilter
from ..chain.selection.tables import TablePatterns
from ..chain.selection.where import Where
from ..config import build
from ..errors import ConfigError
from ..events import Op
from ..mounter import StatementFilter
from ..mounter.mysql.change import KINDS as DDL_KINDS

OPS: Final[tuple[Op, ...]] = get_args(Op)
EVENTS: Final = (*OPS, *DDL_KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """One `[[filter]]`."""

    tables: tuple[str, ...]
    """Patterns of tables, as in `source.tables`."""
    events: tuple[str, ...] = ()
    """Events that are dropped: of EVENTS. Empty: every schema change whose statement matches `sql`."""
    sql: str = ""
    """Regular expression, searched for in the statement of a schema change; empty: all match."""
    where: str = ""
    """Condition on a row's columns. Alone: rows for which it is true aren't in the target. With `events`:
    changes are dropped if it is true for the row before and after them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The filters of a feed."""

    rows: tuple[RowFilter, ...] = ()
    statements: tuple[StatementFilter, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows or self.statements)


NO_FILTERS: Final = Filters()


def filters_of(sections: Sequence[Mapping[str, Any]]) -> Filters:
    """Return the filters of the sections. Raises ConfigError."""
    rows: list[RowFilter] = []
    statements: list[StatementFilter] = []
    for number, section in enumerate(sections, 1):
        where = f"filter {number}"
        found = build(FilterOptions, section, where)
        tables = TablePatterns.parse(found.tables, f"{where}.tables")
        for event in found.events:
            if event not in EVENTS:
                raise ConfigError(f"{where}.events: {event!r} is none of {', '.join(map(repr, EVENTS))}")
        ops = frozenset(op for op in OPS if op in found.events)
        kinds = frozenset(found.events) - ops
        if not (found.events or found.sql or found.where):
            raise ConfigError(
                f"{where}: without events, sql and where it drops everything: exclude the tables in "
                "source.tables"
            )
        if ops and found.sql:
            raise ConfigError(
                f"{where}.sql: changes of rows ({', '.join(sorted(ops))}) have no statement: give them a "
                "[[filter]] of their own"
            )
        if found.where and (kinds or found.sql):
            raise ConfigError(
                f"{where}.where: schema changes have no rows: give them a [[filter]] of their own"
            )
        if ops or found.where:
            condition = Where(found.where, f"{where}.where") if found.where else None
            rows.append(RowFilter(tables, ops, condition))
        if kinds or found.sql:
            sql = _expression(found.sql, where) if found.sql else None
            statements.append(StatementFilter(tables, kinds or frozenset(DDL_KINDS), sql))
    return Filters(rows=tuple(rows), statements=tuple(statements))


def _expression(text: str, where: str) -> re.Pattern[str]:
    """Return the expression; upper and lower case are the same in it, as in SQL's words."""
    try:
        return re.compile(text, re.IGNORECASE | re.DOTALL)
    except re.error as error:
        raise ConfigError(f"{where}.sql = {text!r}: not a regular expression: {error}") from None
