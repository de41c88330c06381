"""Filters of a feed's events: the `[[filter]]` sections of a feed.toml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, get_args

from ..config import Given
from ..errors import ConfigError
from ..events import Op
from ..mounter import StatementFilter
from ..mounter.mysql.change import KINDS, DdlKind
from ..routing import RowFilter, TableFilter, Where
from ..routing.table_option import TABLES

Event: TypeAlias = Literal[Op, DdlKind]
OPS: Final[tuple[Op, ...]] = get_args(Op)


def _condition(text: str, where: str) -> Where | None:
    return Where(text, where) if text else None


def _expression(text: str, where: str) -> re.Pattern[str] | None:
    """Return the expression; upper and lower case are the same in it, as in SQL's words."""
    try:
        return re.compile(text, re.IGNORECASE | re.DOTALL) if text else None
    except re.error as error:
        raise ConfigError(f"{where} = {text!r}: not a regular expression: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """One `[[filter]]`: events that are dropped."""

    tables: Annotated[TableFilter, TABLES]
    """Patterns of tables, as in `source.tables`."""
    events: tuple[Event, ...] = ()
    """Events that are dropped. Empty: every schema change whose statement matches `sql`."""
    sql: Annotated[re.Pattern[str] | None, Given(kind=str, parse=_expression)] = None
    """Regular expression, searched for in the statement of a schema change; empty: all match."""
    where: Annotated[Where | None, Given(kind=str, parse=_condition)] = None
    """Condition on a row's columns. Alone: rows for which it is true aren't in the target. With `events`:
    changes are dropped if it is true for the row before and after them."""

    def __post_init__(self) -> None:
        if not (self.events or self.sql or self.where):
            raise ConfigError(
                "without events, sql and where it drops everything: exclude the tables in source.tables"
            )
        if self.ops and self.sql:
            raise ConfigError(
                f"sql: changes of rows ({', '.join(sorted(self.ops))}) have no statement: give them a "
                "[[filter]] of their own"
            )
        if self.where and (self.kinds or self.sql):
            raise ConfigError("where: schema changes have no rows: give them a [[filter]] of their own")

    @property
    def ops(self) -> frozenset[Op]:
        return frozenset(op for op in OPS if op in self.events)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of schema changes."""
        return frozenset(self.events) - self.ops


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The filters of a feed."""

    rows: tuple[RowFilter, ...] = ()
    statements: tuple[StatementFilter, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows or self.statements)


NO_FILTERS: Final = Filters()


def filters_of(sections: Sequence[FilterOptions], where: str) -> Filters:  # noqa: ARG001
    """Return the filters of the sections."""
    return Filters(
        rows=tuple(RowFilter(one.tables, one.ops, one.where) for one in sections if one.ops or one.where),
        statements=tuple(
            StatementFilter(one.tables, one.kinds or frozenset(KINDS), one.sql)
            for one in sections
            if one.kinds or one.sql
        ),
    )
