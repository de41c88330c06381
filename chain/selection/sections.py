"""Rules from sections of a feed.toml: [[filter]], [[on_ddl]], and those of a sink."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from ...config import Given
from ...errors import ConfigError
from ...events import Op
from .kinds import DDL_KINDS, KINDS, OPS, DdlKind
from .rule import DdlAction, Rule
from .share import Share
from .table_option import TABLES
from .tables import EVERY_TABLE, TablePatterns
from .where import Where

Event: TypeAlias = Literal[Op, DdlKind]


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
    """One `[[filter]]`."""

    tables: Annotated[TablePatterns, TABLES]
    """Patterns of tables, as in `source.tables`."""
    events: tuple[Event, ...] = ()
    """Events that are dropped. Empty: every schema change whose statement matches `sql`."""
    sql: Annotated[re.Pattern[str] | None, Given(kind=str, parse=_expression)] = None
    """Regular expression, searched for in the statement of a schema change; empty: all match."""
    where: Annotated[Where | None, Given(kind=str, parse=_condition)] = None
    """Condition on a row's columns. Alone: rows for which it is true aren't in the target. With `events`:
    changes are dropped if it is true for the row before and after them."""

    def __post_init__(self) -> None:
        ops, ddl_kinds = self._kinds(OPS), self._kinds(DDL_KINDS)
        if not (self.events or self.sql or self.where):
            raise ConfigError(
                "without events, sql and where it drops everything: exclude the tables in source.tables"
            )
        if ops and self.sql:
            raise ConfigError(
                f"sql: changes of rows ({', '.join(sorted(ops))}) have no statement: give them a [[filter]] "
                "of their own"
            )
        if self.where and (ddl_kinds or self.sql):
            raise ConfigError("where: schema changes have no rows: give them a [[filter]] of their own")

    def _kinds(self, among: Sequence[Event]) -> frozenset[Event]:
        return frozenset(self.events).intersection(among)

    def rules(self) -> Iterator[Rule]:
        """Yield the rules about rows, and about schema changes."""
        ops, ddl_kinds = self._kinds(OPS), self._kinds(DDL_KINDS)
        if ops or self.where:
            yield Rule(self.tables, ops, where=self.where)
        if ddl_kinds or self.sql:
            yield Rule(self.tables, ddl_kinds or frozenset(DDL_KINDS), self.sql)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOptions:
    """One `[[sink.rows]]`. Several that match a table all count."""

    tables: Annotated[TablePatterns, TABLES] = EVERY_TABLE
    """Patterns of tables, as in `source.tables`; without it, all tables of the sink."""
    where: Annotated[Where | None, Given(kind=str, parse=_condition)] = None
    """Condition on a row's columns: the target has the rows for which it is true. Empty: all rows."""
    events: tuple[Op, ...] = OPS
    """Changes of the source that the sink gets. Rows of a snapshot always come."""

    def __post_init__(self) -> None:
        if not self.events:
            raise ConfigError("events: no change would come: exclude the tables in the sink's tables")
        if not (self.where or self._others):
            raise ConfigError("it chooses no rows without where or events")

    @property
    def _others(self) -> frozenset[Op]:
        return frozenset(OPS) - frozenset(self.events)

    def rules(self) -> Iterator[Rule]:
        """Yield the rules about other rows and changes."""
        if self.where:
            yield Rule(self.tables, where=self.where, keeps=True, key="rows")
        if self._others:
            yield Rule(self.tables, self._others, key="rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlOptions:
    """One `[[on_ddl]]`: of several that match a schema change, the last one counts."""

    tables: Annotated[TablePatterns, TABLES]
    """Patterns of tables, as in `source.tables`."""
    kinds: tuple[DdlKind, ...] = DDL_KINDS
    """Kinds of schema changes; without it, all."""
    action: DdlAction
    """Treatment: `resnapshot` loads the table again."""


def rules_of(sections: Sequence[FilterOptions | RowsOptions], _: str = "") -> tuple[Rule, ...]:
    """Return the rules of the sections."""
    return tuple(rule for section in sections for rule in section.rules())


def ddl_rules(sections: Sequence[DdlOptions], _: str = "") -> tuple[Rule, ...]:
    """Return the rules of the [[on_ddl]] sections."""
    return tuple(Rule(one.tables, frozenset(one.kinds), action=one.action) for one in sections)


def omission_rules(*, sync_ddl: bool = True, ignore_txn_commit_ts: Collection[int] = ()) -> Iterator[Rule]:
    """Yield a rule about schema changes, without `sync_ddl`, and one about events with these timestamps."""
    if not sync_ddl:
        yield Rule(kinds=frozenset(DDL_KINDS))
    if ignore_txn_commit_ts:
        yield Rule(kinds=frozenset(KINDS), timestamps=frozenset(ignore_txn_commit_ts))


def share_rule(number: int, count: int, columns: tuple[str, ...]) -> Rule:
    """Return the rule about all but one of `count` shares of the rows, by these columns."""
    return Rule(EVERY_TABLE, share=Share(number, count, columns), keeps=True, key="rows")
