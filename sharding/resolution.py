"""The end of a lock: its change is executed in the merged table, and the shards that waited go on."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec.structs import replace

from ..chain import Barrier, Element, Lag
from ..events import Ddl, Table, altered
from ..failpoint import reach
from .agreement import Agreement, Passage
from .held_shards import HeldShards
from .members import Members
from .merged_table import MergedTable
from .merged_tables import MergedTables, keep
from .route import Route, Routes
from .routed_tables import RoutedTables
from .shard import Shard
from .statement import ShardStatement, is_alteration
from .unlock import Unlock

log = logging.getLogger("tidemill.sharding")


class Resolution:
    """Resolves the active changes of merged tables, never inside a transaction."""

    def __init__(
        self,
        routes: Routes,
        merged: MergedTables,
        held: HeldShards,
        members: Members,
        tables: RoutedTables,
        agreement: Agreement,
    ) -> None:
        self._routes = routes
        self._merged = merged
        self._held = held
        self._members = members
        self._tables = tables
        self._agreement = agreement

    def settle(self) -> list[Element]:
        """Execute the changes that all shards have made."""
        passed: list[Element] = []
        unsettled = self._merged.unsettled
        while unsettled:
            merged = self._merged[unsettled.pop()]
            while self._agreement.is_ready(merged) and not self._held.is_sought(merged):
                reach("shard.synced")
                passage = self._agreement.passage(merged)
                if passage is None:
                    passed += _barrier(merged)
                    break
                passed += self._resolve(merged, passage)
        return passed

    def unlock(self, requests: Sequence[Unlock]) -> list[Element]:
        """Resolve the changes of these requests, though not all shards have made them."""
        passed: list[Element] = []
        for request in requests:
            merged = self._merged.of_lock(request.lock)
            if merged is None or self._agreement.force(merged, request):
                continue
            owner = merged.sequence.owner
            if owner is None or owner.place != request.statement:
                continue  # it is resolved, or the stage hasn't come to it yet
            if self._held.is_sought(merged):
                continue
            log.warning("%s: %s resolved by request", merged.id, owner.ddl.query)
            passage = Passage(request.action == "exec")
            passed += self._resolve(merged, passage, by=request.owner)
            self._merged.unsettled.add(merged.target)
        return passed

    def definition_after(self, merged: MergedTable) -> Table:
        """Return the merged table's definition after its active change."""
        owner = merged.sequence.owner
        assert owner is not None
        return altered(merged.table, self._executed(owner).actions)

    def _resolve(self, merged: MergedTable, passage: Passage, *, by: str = "") -> list[Element]:
        """Return the active change for the target, and what it lets go on.

        It is the owner's, as of its position: that is the same whenever it is resolved. One checkpoint
        contains it and the positions of all shards after it. `by` names another shard whose is executed.
        Shards that haven't made it owe it.
        """
        made = [merged.sequence.made(shard)[0] for shard in merged.sequence.shards]
        owner = next((one for one in made if str(one.shard) == by), made[0])
        executes = passage.executes
        ddl = replace(self._executed(owner), shared=passage.number)
        merged.resolve(passage.table or altered(merged.table, ddl.actions))
        merged.number = passage.number or merged.number
        self._tables.clear()
        passed: list[Element] = [keep(merged)]
        passed += [Lag(one.shard.origin_name, one.after) for one in made if one is not owner or not executes]
        if executes:
            passed.append(ddl)
        for one in sorted(made, key=lambda one: one.after.ts):
            held = self._held[one.shard]
            if held.is_forgotten:
                held.sought = one.after
            else:
                passed += self._let_go(one.shard)
                reach("shard.released")
        return passed

    def _executed(self, owner: ShardStatement) -> Ddl:
        route = self._route(owner.shard)
        return replace(route.ddl(owner.ddl, route.actions(owner.ddl.actions)), last=True)

    def _route(self, shard: Shard) -> Route:
        route = self._routes.find(*shard)
        assert route is not None
        return route

    def _let_go(self, shard: Shard) -> list[Element]:
        """Return a shard's held items up to its next schema change that waits."""
        passed: list[Element] = []
        while True:
            items, ddl = self._held.released(shard)
            passed += items
            if ddl is None:
                return [*passed, *self._held.remove(shard)]
            if is_alteration(ddl):
                return passed
            marks, item = self._members.change(self._route(shard), ddl)
            passed += marks
            if isinstance(item, Ddl):  # a refusal; a transaction without rows has passed already
                passed.append(item)


def _barrier(merged: MergedTable) -> list[Element]:
    """Return the mark by which the active change becomes ready, if it isn't sent yet."""
    number = merged.number + 1
    if merged.barrier == number:
        return []
    merged.barrier = number

    def pass_it() -> None:
        merged.ready = number

    return [Barrier(pass_it)]
