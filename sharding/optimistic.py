"""The optimistic way: the merged table has the join of its shards' definitions, and shards wait only in
conflicts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..chain import Element, Lag, emptied
from ..errors import SinkError
from ..events import Action, Ddl, Table, TablePosition, Ts, altered
from .coordination import Replacement
from .held_shards import HeldShards
from .join import Conflict
from .merged_table import MergedTable
from .merged_tables import keep
from .route import Route
from .shard import Shard

log = logging.getLogger("tidemill.sharding")


class _Pending(NamedTuple):
    """The change of a shard that waits."""

    merged: MergedTable
    actions: tuple[Action, ...]
    """All changes of the shard since it waits."""
    first: tuple[Action, ...]
    """The change that conflicts."""
    before: TablePosition
    """Position before it, from which the source is read again once it is no conflict any more."""


class Optimistic:
    """A change that widens the table is executed at the first shard, another one at the last shard.

    A shard whose change conflicts with those of others waits until one of them is undone. Then the source is
    read again from before that change. A shard that undoes its own change goes on at once, unless it had
    rows meanwhile.
    """

    def __init__(
        self,
        held: HeldShards,
        lags: Mapping[str, TablePosition],
        now: Callable[[], float],
        tell_wait: Callable[[], object],
        conflict_seconds: float,
    ) -> None:
        """`lags` has the positions of tables that lag in the checkpoint; `tell_wait` is called when a shard
        begins to wait."""
        self._held = held
        self._lags = lags
        self._now = now
        self._tell_wait = tell_wait
        self._conflict_seconds = conflict_seconds
        self._pending: dict[Shard, _Pending] = {}

    def alter(self, merged: MergedTable, route: Route, ddl: Ddl, before: TablePosition | None) -> Replacement:
        shard, actions = route.shard, route.actions(ddl.actions)
        if shard in self._held:
            return self._undone(shard, ddl, actions)
        try:
            changed = merged.redefine(shard, actions)
        except Conflict as error:
            if not self._conflict_seconds:
                raise
            return self._wait(merged, shard, ddl, actions, before, error)
        self._look(merged, shard, ddl.commit_ts)
        marks: list[Element] = [keep(merged)]
        if before is None:
            marks.append(Lag(shard.origin_name, TablePosition(ddl.commit_ts, ddl.position)))
        return Replacement(marks, route.ddl(ddl, changed) if changed else emptied(ddl))

    def _wait(
        self,
        merged: MergedTable,
        shard: Shard,
        ddl: Ddl,
        actions: tuple[Action, ...],
        before: TablePosition | None,
        error: Conflict,
    ) -> Replacement:
        log.warning("%s waits: %s: %s", shard, ddl.query, error)
        marks = self._held.begin(shard, self._now(), before, f"{ddl.query}: {error}")
        place = before if before is not None else self._lags[shard.origin_name]
        self._pending[shard] = _Pending(merged, actions, actions, place)
        self._tell_wait()
        return Replacement(marks, emptied(ddl))

    def _undone(self, shard: Shard, ddl: Ddl, actions: tuple[Action, ...]) -> Replacement:
        """Note a further change of a shard that waits."""
        pending = self._pending[shard]
        pending = self._pending[shard] = pending._replace(actions=(*pending.actions, *actions))
        before = pending.merged.definition(shard)
        after = altered(before, pending.actions)
        if self._held[shard].has_rows or (after.columns, after.key) != (before.columns, before.key):
            self._held.add_ddl(shard, ddl)
            return Replacement([], emptied(ddl))
        log.warning("%s goes on: %s undid its change", shard, ddl.query)
        del self._pending[shard]
        return Replacement(self._held.remove(shard), emptied(ddl))

    def _look(self, merged: MergedTable, changed: Shard, ts: Ts) -> None:
        """Have the source read again for shards whose changes are no conflicts any more."""
        for shard, pending in self._pending.items():
            held = self._held[shard]
            if pending.merged is merged and held.sought is None and merged.accepts(shard, pending.first):
                log.warning("%s goes on: its change is no conflict any more", shard)
                self._held.read_again(shard, pending.before, (changed.origin_name, ts))

    def check(self) -> None:
        """Raise SinkError if a conflict has lasted too long."""
        now = self._now()
        for shard in self._pending:
            held = self._held[shard]
            if held.sought is None and now - held.since > self._conflict_seconds:
                raise SinkError(
                    f"{shard}: {held.conflict}, and start the feed again; it has waited "
                    f"{self._conflict_seconds:g} s, sharding.conflict_seconds"
                )

    def join(self, merged: MergedTable, shard: Shard, table: Table) -> tuple[Action, ...]:
        if not merged.has(shard):
            return merged.adopt(shard, table)
        merged.join(shard, table)
        return ()

    def leave(self, merged: MergedTable, shard: Shard, ts: Ts) -> None:
        merged.release(shard)
        self._look(merged, shard, ts)
