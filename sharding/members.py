"""The shards that are members of merged tables: created, dropped and emptied."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from ..chain import Element, emptied
from ..errors import InvariantViolated, SinkError
from ..events import CREATED, Chunk, CreateTable, Ddl, DropTable, Table, TruncateTable
from .agreement import Agreement
from .coordination import Coordination, Replacement
from .merged_tables import MergedTables, keep
from .options import OnDrop
from .route import Route
from .shard import Shard

log = logging.getLogger("tidemill.sharding")


class Members:
    """Applies the schema changes of shards that aren't changes of columns or keys."""

    def __init__(
        self, merged: MergedTables, coordination: Coordination, agreement: Agreement, on_drop: OnDrop
    ) -> None:
        self._merged = merged
        self._coordination = coordination
        self._agreement = agreement
        self._on_drop = on_drop

    def change(self, route: Route, ddl: Ddl) -> Replacement:
        """Return the outcome of a CREATE, DROP or TRUNCATE, or of a statement that can't be followed."""
        schema, table = route.target
        if ddl.refusal or ddl.reload:
            refused = replace(
                ddl,
                schema=schema,
                table=table,
                refusal=ddl.refusal or f"{ddl.reload}; a single shard of {schema}.{table} can't be loaded",
                reload="",
                origin=route.shard.full_name,
            )
            return Replacement([], refused)
        match ddl.actions[0]:
            case CreateTable(created, replaces):
                return self._create(route, ddl, created, replaces=replaces)
            case DropTable():
                self._note_lost_rows(route.shard, ddl)
                merged = self._merged.get(route.target)
                marks: list[Element] = []
                if merged is not None and merged.has(route.shard):
                    self._coordination.leave(merged, route.shard, ddl.commit_ts)
                    marks.append(keep(merged))
                return Replacement(marks, emptied(ddl))
            case TruncateTable():
                self._note_lost_rows(route.shard, ddl)
                return Replacement([], emptied(ddl))
            case action:
                raise InvariantViolated(f"{type(action).__name__} of {route.shard}")

    def _create(self, route: Route, ddl: Ddl, table: Table, *, replaces: bool) -> Replacement:
        shard, routed = route.shard, route.table(table)
        merged = self._merged.get(route.target)
        if merged is None or (self._agreement.is_shared and not merged.shards):
            return self._create_merged(route, ddl, routed)
        if replaces and merged.has(shard) and ddl.query:
            self._note_lost_rows(shard, ddl)
            self._coordination.leave(merged, shard, ddl.commit_ts)
        actions = self._coordination.join(merged, shard, routed)
        if not actions:
            passed = emptied(ddl)
            if not ddl.query:  # for its snapshot: note that it is there
                passed = replace(passed, chunk=Chunk(shard.origin_name, CREATED))
            return Replacement([keep(merged)], passed)
        if not ddl.query:
            raise SinkError(
                f"{shard} differs from the other shards of {merged.full_name} when it is loaded: make "
                "their columns the same, and load everything into an empty target"
            )
        return Replacement([keep(merged)], route.ddl(ddl, actions))

    def _create_merged(self, route: Route, ddl: Ddl, routed: Table) -> Replacement:
        """Create the merged table as its first shard is, unless other feeds have."""
        created = self._agreement.create(route.target, routed)
        merged = self._merged.add(route.target, created.table)
        merged.number = created.number or 0
        merged.join(route.shard, routed)
        made = replace(
            route.ddl(ddl, (CreateTable(created.table, exists=created.is_older),)),
            logged_at=ddl.logged_at,
            shared=None if created.number is None else 0,
        )
        return Replacement([keep(merged)], made)

    def _note_lost_rows(self, shard: Shard, ddl: Ddl) -> None:
        """Note that a shard's rows are gone in the source, and stay in the merged table."""
        if self._on_drop == "error":
            raise SinkError(
                f'{shard}: its rows are gone by {ddl.query}, and sharding.on_drop = "error": remove them '
                f'from the merged table, and set on_drop = "keep"'
            )
        log.warning("%s: %s: its rows stay in the merged table", shard, ddl.query)
