"""The optimistic way: the merged table has the join of its shards' definitions, and no shard waits."""

from __future__ import annotations

from ..chain import emptied
from ..events import Action, Ddl, Table, TablePosition
from .coordination import Outcome
from .merged_table import MergedTable
from .merged_tables import keep
from .route import Route
from .shard import Shard


class Optimistic:
    """A change that widens the table is executed at the first shard, another one at the last shard."""

    def alter(
        self,
        merged: MergedTable,
        route: Route,
        ddl: Ddl,
        before: TablePosition | None,  # noqa: ARG002
    ) -> Outcome:
        actions = merged.redefine(route.shard, route.actions(ddl.actions))
        return Outcome([keep(merged)], route.ddl(ddl, actions) if actions else emptied(ddl))

    def join(self, merged: MergedTable, shard: Shard, table: Table) -> tuple[Action, ...]:
        if not merged.has(shard):
            return merged.adopt(shard, table)
        merged.join(shard, table)
        return ()

    def leave(self, merged: MergedTable, shard: Shard) -> None:
        merged.release(shard)
