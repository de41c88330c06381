"""Filters of statements: schema changes that a feed doesn't follow."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from ...codec.mysql.entry import Query
from .change import Change
from .rule import Matching


class StatementFilter(Struct, frozen=True):
    """Drops changes of these tables and kinds, by statements that match."""

    tables: Matching
    kinds: frozenset[str]
    """Some of KINDS."""
    sql: re.Pattern[str] | None = None
    """Expression that is searched for in the statement; None: all match."""

    def left(self, change: Change, query: Query) -> Change | None:
        """Return the change without what is dropped; None if nothing is left."""
        if not self.tables.matches(change.schema, change.table):
            return change
        if self.sql is not None and self.sql.search(query.query) is None:
            return change
        if not change.actions:  # its effect isn't known
            return None if change.kind in self.kinds else change
        actions = tuple([one for one in change.actions if change.kind_of(one) not in self.kinds])
        if len(actions) == len(change.actions):
            return change
        return replace(change, actions=actions) if any(map(change.kind_of, actions)) else None
