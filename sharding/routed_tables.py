"""The tables that the stage has seen, with the routes of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..events import Run, Table, TableName, Ts
from .fit import MergedColumns, kinds
from .held_shards import HeldShards
from .merged_tables import MergedTables
from .route import Route, RoutedRun, Routes

_MAX_TABLES = 10_000


class RoutedTable(NamedTuple):
    """A table, and its rows' way into a merged table."""

    table: Table
    route: Route | None
    """None if the table keeps its name."""
    routed: Table
    fit: MergedColumns | None
    """Treatment of rows whose columns aren't those of the merged table."""

    def run(self, run: Run, route: Route) -> RoutedRun:
        fit = self.fit
        table = self.routed if fit is None else fit.table
        return RoutedRun(run.commit_ts, run.start_ts, table, run.op, None, run, route.values, fit)


class RoutedTables:
    """Finds a table's route by the identity of the table, as hashing one takes long."""

    def __init__(
        self, routes: Routes, sources: Sequence[str], merged: MergedTables, held: HeldShards
    ) -> None:
        """`sources` has the names of several sources by lane: a commit ts tells its source."""
        self._routes = routes
        self._sources = tuple(sources) or ("",)
        self._merged = merged
        self._held = held
        self._tables: dict[int, RoutedTable] = {}
        self._routed: dict[TableName, list[Table]] = {}
        """Definitions of each merged table: equal ones are one object, so that rows share statements."""

    def clear(self) -> None:
        """Forget all tables: a schema change may alter how their rows fit."""
        self._tables.clear()
        self._routed.clear()

    def route(self, ts: Ts, schema: str, table: str) -> Route | None:
        """Return the route of a table by its name at a commit ts; None if it keeps its name."""
        return self._routes.find(self._sources[ts % len(self._sources)], schema, table)

    def find(self, table: Table, ts: Ts) -> RoutedTable:
        routed_table = self._tables.get(id(table))
        if routed_table is not None and routed_table.table is table:
            return routed_table
        fit = None
        route = self.route(ts, table.schema, table.name)
        routed = table
        if route is not None:
            routed = self._shared(route.table(table))
            fit = self._fit(route, routed)
        if len(self._tables) >= _MAX_TABLES:
            self.clear()
        self._tables[id(table)] = routed_table = RoutedTable(table, route, routed, fit)
        return routed_table

    def _shared(self, routed: Table) -> Table:
        known = self._routed.setdefault((routed.schema, routed.name), [])
        for other in known:
            if other == routed:
                return other
        known.append(routed)
        return routed

    def _fit(self, route: Route, table: Table) -> MergedColumns | None:
        merged = self._merged.get(route.target)
        if merged is None or route.shard in self._held or kinds(table) == kinds(merged.table):
            return None
        return MergedColumns(route.shard, table, merged.table)
