"""Routes: which table of a source goes into which merged table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..errors import SinkError
from ..events import Action, ChangeKey, Ddl, Row, RowChange, Run, Table, TableName
from .extractor import Extractor
from .fit import MergedColumns
from .options import RouteRule, different_columns
from .shard import Shard

_MOST = 10_000
"""Maximum number of tables whose routes are remembered."""


class RoutedRun(Run, eq=False, gc=False):
    """The changes of a run for another table, with extracted values at the end of each row."""

    routed: Run
    values: Row
    fit: MergedColumns | None = None

    @property
    def origin_name(self) -> str:
        return self.routed.origin_name

    def changes(self) -> list[RowChange]:
        if self.decoded is None:
            table, values, fit = self.table, self.values, self.fit
            changes = self.routed.changes()
            if not values and fit is None:
                self.decoded = [
                    RowChange(one.commit_ts, one.start_ts, table, one.op, one.before, one.after)
                    for one in changes
                ]
                return self.decoded
            before = [None if one.before is None else one.before + values for one in changes]
            after = [None if one.after is None else one.after + values for one in changes]
            if fit is not None:
                before, after = fit.rows(before), fit.rows(after)
            self.decoded = [
                RowChange(one.commit_ts, one.start_ts, table, one.op, was, is_)
                for one, was, is_ in zip(changes, before, after, strict=True)
            ]
        return self.decoded

    def __len__(self) -> int:
        return len(self.routed)


class Route:
    """The way of one shard into its merged table."""

    def __init__(self, shard: Shard, target: TableName, extractors: Sequence[Extractor]) -> None:
        """Raises SinkError if an extractor has no value for the shard."""
        self.shard = shard
        self.target = target
        self.values: Row = tuple(one.value(shard) for one in extractors)
        self._extractors = extractors

    def table(self, table: Table) -> Table:
        """Return the shard's table under the merged table's name, with the extracted columns.

        Raises SinkError if the shard has such a column itself.
        """
        have = {column.name.lower() for column in table.columns}
        for extractor in self._extractors:
            if extractor.column.name.lower() in have:
                raise clash(extractor, self.shard)
        columns = (*table.columns, *(one.column for one in self._extractors))
        own = range(len(table.columns), len(columns))
        added = [index for index, one in zip(own, self._extractors, strict=True) if one.in_key]
        key = (*table.key, *added) if table.key else ()
        schema, name = self.target
        return replace(table, schema=schema, name=name, columns=columns, key=key, source_name="")

    def actions(self, actions: Sequence[Action]) -> tuple[Action, ...]:
        """Return a shard's changes for the merged table, whose key ends with the extracted columns."""
        added = tuple(one.column.name for one in self._extractors if one.in_key)
        return tuple(
            ChangeKey((*one.columns, *added)) if isinstance(one, ChangeKey) and one.columns else one
            for one in actions
        )

    def ddl(self, ddl: Ddl, actions: tuple[Action, ...]) -> Ddl:
        """Return the shard's change as one of the merged table, with these effects.

        It has no position in the log: among several sources, that isn't unique.
        """
        schema, table = self.target
        return replace(
            ddl, schema=schema, table=table, actions=actions, origin=self.shard.full_name, logged_at=""
        )

    def check_column(self, name: str) -> None:
        """Raise SinkError if a column that a shard adds is one of the extracted ones."""
        for extractor in self._extractors:
            if extractor.column.name.lower() == name.lower():
                raise clash(extractor, self.shard)


def clash(extractor: Extractor, shard: Shard) -> SinkError:
    return SinkError(
        f"route.extract: column {extractor.column.name} is a column of {shard} itself: give the extracted "
        "one another name"
    )


class Routes:
    """All routes of a feed. A table that no route matches keeps its name."""

    def __init__(self, rules: Sequence[RouteRule] = (), *, online_ddl: bool = True) -> None:
        """With `online_ddl`, the tables of online schema changes of shards have no route."""
        self._rules = tuple(rules)
        self._online_ddl = online_ddl
        self._filling: dict[TableName, RouteRule] = {}
        """The first route to each table: all that lead there fill the same columns."""
        self.find = lru_cache(maxsize=_MOST)(self._find)
        self.ghost = lru_cache(maxsize=_MOST)(self._ghost)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def _find(self, source: str, schema: str, table: str) -> Route | None:
        """Return the route of a table; None if it keeps its name.

        Raises SinkError if two routes lead it to different tables, or fill different columns of one.
        """
        if self.ghost(source, schema, table) is not None:
            return None
        rules = self._matching(source, schema, table)
        if not rules:
            return None
        shard = Shard(source, schema, table)
        first, target = rules[0], rules[0].target.of(shard)
        by_rule = [(rule, rule.target.of(shard)) for rule in rules]
        if any(other != target for _, other in by_rule):
            targets = " and ".join(f"{'.'.join(name)} (route {rule.number})" for rule, name in by_rule)
            raise SinkError(f"{shard} is routed to {targets}: let one route match it")
        for rule in rules:
            if rule.columns != (known := self._filling.setdefault(target, first)).columns:
                raise SinkError(different_columns(rule, known, ".".join(target)))
        return Route(shard, target, first.extractors)

    def _ghost(self, source: str, schema: str, table: str) -> tuple[Shard, bool] | None:
        """Return the shard whose online schema change uses a table, with True for the table that takes its
        place; None for any other table."""
        ghost = ghost_of(table) if self._online_ddl else None
        if ghost is None or not self._matching(source, schema, ghost.table):
            return None
        return Shard(source, schema, ghost.table), ghost.is_shadow

    def _matching(self, source: str, schema: str, table: str) -> list[RouteRule]:
        return [rule for rule in self._rules if rule.matches(source, schema, table)]


_NAME: Final = re.compile(r"_{1,11}(.+)_(gho|new|ghc|del|old)")
_SHADOWS: Final = ("gho", "new")


class Ghost(NamedTuple):
    """A table of an online schema change: `_NAME_gho` or `_NAME_new` takes the place of the table NAME."""

    table: str
    """Name of the table that is changed."""
    is_shadow: bool
    """True for the table that takes its place; False for its old version, and for logs of the change."""


def ghost_of(table: str) -> Ghost | None:
    """Return what a name says; None if it isn't one of these."""
    match = _NAME.fullmatch(table)
    return None if match is None else Ghost(match[1], match[2] in _SHADOWS)
