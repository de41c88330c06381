"""The pessimistic way: a change is executed once all shards have made it, and those that have wait."""

from __future__ import annotations

from collections.abc import Callable

from ..chain import Element, Lag, emptied
from ..errors import SinkError
from ..events import Action, Ddl, Table, TablePosition, Ts
from .coordination import Replacement
from .held_shards import HeldShards
from .merged_table import MergedTable
from .merged_tables import MergedTables, keep
from .route import Route
from .shard import Shard
from .statement import ShardStatement, form_of


class Pessimistic:
    """Puts changes into the sequences of their merged tables; a Resolution executes them.

    With mode = "off", a merged table has one shard, and each change is executed at once.
    """

    def __init__(
        self,
        merged: MergedTables,
        held: HeldShards,
        now: Callable[[], float],
        tell_wait: Callable[[], object],
    ) -> None:
        """`tell_wait` is called when a shard begins to wait."""
        self._merged = merged
        self._held = held
        self._now = now
        self._tell_wait = tell_wait

    def alter(self, merged: MergedTable, route: Route, ddl: Ddl, before: TablePosition | None) -> Replacement:
        shard = route.shard
        is_new = self._report(merged, shard, ddl)
        marks: list[Element] = []
        if shard in self._held:
            self._held.add_ddl(shard, ddl)
        elif is_new:
            marks += self._held.begin(shard, self._now(), before)
            self._tell_wait()
        else:
            marks.append(keep(merged))
            if before is None:
                # Else it would come again after a restart, and not be owed any more.
                marks.append(Lag(shard.origin_name, TablePosition(ddl.commit_ts, ddl.position)))
        return Replacement(marks, emptied(ddl))

    def _report(self, merged: MergedTable, shard: Shard, ddl: Ddl) -> bool:
        """Note a shard's change; return False if the shard owed it, as it was resolved before."""
        form = form_of(ddl)
        if not merged.sequence.made(shard) and merged.owes(shard, form, ddl.query):
            return False
        merged.sequence.add(ShardStatement(shard, ddl, form, TablePosition(ddl.commit_ts, ddl.position)))
        self._merged.unsettled.add(merged.target)
        return True

    def check(self) -> None:
        """Accept any wait: a person ends it by `tidemill unlock`."""

    def join(self, merged: MergedTable, shard: Shard, table: Table) -> tuple[Action, ...]:
        if merged.sequence:
            unsynced = ", ".join(map(str, merged.lock.unsynced))
            raise SinkError(
                f"{shard} is created while a schema change of {merged.full_name} waits for other shards "
                f'({unsynced}): let them make it first, or run tidemill unlock "{merged.id}"'
            )
        merged.join(shard, table)
        return ()

    def leave(self, merged: MergedTable, shard: Shard, ts: Ts) -> None:  # noqa: ARG002
        merged.leave(shard)
        self._merged.unsettled.add(merged.target)
