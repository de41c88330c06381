"""The one form of rules about events: of a feed, a sink, and schema changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ...events import Op, Table, TableName, Ts
from .kinds import DDL_KINDS, KINDS
from .share import Share
from .tables import EVERY_TABLE, TablePatterns
from .where import Where

DdlAction: TypeAlias = Literal["apply", "stop", "skip", "resnapshot"]
Key: TypeAlias = Literal["where", "rows"]
"""Key in a checkpoint of the conditions by which the target was loaded: the feed's, and the sink's own."""


class Rule(Struct, frozen=True):
    """Treatment of the events for which every part of the rule holds."""

    tables: TablePatterns = EVERY_TABLE
    kinds: frozenset[str] = frozenset()
    """Some of KINDS. With all of them the rule is about whole tables; with none about the rows themselves,
    those of a snapshot too, of which a target has the ones that `where` and `share` leave."""
    statements: re.Pattern[str] | None = None
    """Expression that is searched for in the statement of a schema change; None: all match."""
    where: Where | None = None
    """Condition that is true for the row before a change and after it; None: all rows."""
    share: Share | None = None
    """In place of `where`, a share of the rows."""
    keeps: bool = False
    """True if the condition is about the rows that stay: the rule is about the others."""
    timestamps: frozenset[Ts] = frozenset()
    """Commit timestamps of transactions and schema changes; empty: all."""
    action: DdlAction | Literal["drop"] = "drop"
    """Of rules that drop events, each counts; of others about a schema change, the last one."""
    key: Key = "where"

    @property
    def condition(self) -> Where | Share | None:
        return self.where or self.share

    @property
    def label(self) -> str:
        """Name of the condition in an error."""
        if self.where is None:
            return "" if self.share is None else self.share.text
        return f"{'rows.where' if self.keeps else 'the filter where'} = {self.where.text!r}"

    @property
    def is_partial(self) -> bool:
        """True if the target has a part of each table's rows."""
        return not self.kinds

    @property
    def is_whole(self) -> bool:
        """True if the rule is about all events of tables."""
        return self.condition is None and self.statements is None and self.kinds.issuperset(KINDS)

    @property
    def is_about_statements(self) -> bool:
        """True if the rule is about schema changes only."""
        return not self.kinds.isdisjoint(DDL_KINDS) and not self.is_whole

    def concerns(self, table: Table, op: Op, *, is_loaded: bool) -> bool:
        """Return True if the rule is about changes by `op`, or about rows of a snapshot."""
        is_of = self.is_partial or (op in self.kinds and not is_loaded) or self.is_whole
        return is_of and not (is_loaded and self.timestamps) and self.tables.matches(table.schema, table.name)


def only(tables: TablePatterns) -> Rule:
    """Return the rule that drops all events of other tables."""
    return Rule(tables.others(), frozenset(KINDS))


def decided(rules: Sequence[Rule], name: TableName, kind: str, statement: str) -> str:
    """Return what the last rule that matches does with a schema change of this kind; "apply" if none does."""
    for rule in reversed(rules):
        if (
            kind in rule.kinds
            and rule.tables.matches(*name)
            and (rule.statements is None or rule.statements.search(statement))
        ):
            return rule.action
    return "apply"
