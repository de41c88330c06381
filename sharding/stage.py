"""The stage that merges shards: routes their rows, and coordinates their schema changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ..chain import Barrier, Element, Keep, Lag, Stage, StageContext, emptied
from ..events import Checkpoint, Ddl, RenameTables, Rows, Run, TablePosition, Transaction, Wait
from ..failpoint import reach
from .agreement import Agreement, Alone
from .among_feeds import AmongFeeds
from .coordination import Coordination, Replacement, reject_rename, reject_uncoordinated
from .held_shards import HeldShards
from .members import Members
from .merged_table import MergedTable
from .merged_tables import MergedTables
from .optimistic import Optimistic
from .options import ShardingOptions
from .pessimistic import Pessimistic
from .resolution import Resolution
from .route import Route, Routes
from .routed_tables import RoutedTables
from .shard import Shard
from .shared_lock import place_of
from .shared_locks import SharedLocks
from .statement import is_alteration
from .status import LockStatus, status_of
from .unlock import Unlock


class ShardStage(Stage):
    """Routes rows of shards into merged tables, and executes a schema change once all shards have made it.

    A shard that has made the change waits: its own position in the checkpoint stays before the change, and
    its later rows are held, up to a quota; beyond that they are dropped, and the source is read again once
    they can pass. After a restart at any point, the changes of the waiting shards come again, by these
    positions.
    Only the definition and the shards of each merged table are state of this stage.
    """

    name = "sharding"

    def __init__(
        self,
        options: ShardingOptions,
        routes: Routes,
        sources: Sequence[str],
        waits: Callable[[], object] = lambda: None,
        shared: SharedLocks | None = None,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        """`sources` has the names of several sources by lane: a commit ts tells its source. `waits` is called
        when a shard begins to wait. `shared` has the locks of several feeds, if they share merged tables;
        `check` raises an error if this feed may not write any more."""
        self._tell_wait = waits
        self._options = options
        self._shared = shared
        self._check = check
        self._routes = routes
        self._sources = sources
        self._unlocks: tuple[Unlock, ...] = ()
        self._merged = MergedTables("", {})
        self._held = HeldShards(options.max_held_rows)

    def open(self, context: StageContext) -> None:
        checkpoint, options = context.checkpoint, self._options
        self._context = context
        self._start_ts = checkpoint.ts
        self._passed = TablePosition(checkpoint.ts, checkpoint.position)
        self._is_late_open = False
        self._is_open = False  # inside a transaction
        self._is_loading = checkpoint.loading is not None
        late = [name for name, own in checkpoint.tables.items() if own.ts < checkpoint.ts]
        self._held = held = HeldShards(options.max_held_rows, late)
        self._merged = merged = MergedTables(context.feed, checkpoint.stages)
        self._tables = RoutedTables(self._routes, self._sources, merged, held)
        self._coordination: Coordination
        if options.mode == "optimistic":
            self._coordination = Optimistic(
                held, checkpoint.tables, context.now, self._tell_wait, options.conflict_seconds
            )
        else:
            for one in merged:
                one.reject_differing()
            self._coordination = Pessimistic(merged, held, context.now, self._tell_wait)
        self._agreement: Agreement = Alone()
        if self._shared is not None:
            self._agreement = AmongFeeds(
                self._shared,
                merged,
                context.now,
                lambda one: self._resolution.definition_after(one),
                self._tell_wait,
            )
        self._members = Members(merged, self._coordination, self._agreement, options.on_drop)
        self._resolution = Resolution(
            self._routes, merged, held, self._members, self._tables, self._agreement
        )
        self._marks = self._agreement.open()
        self._seeks = False

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        self._check()
        passed, self._marks = self._marks, []
        for element in batch:
            if isinstance(element, Lag):
                passed += self._held.lag(element)
                continue
            if isinstance(element, (Barrier, Keep)):
                passed.append(element)
                continue
            passed += self._ddl(element) if isinstance(element, Ddl) else self._rows(element)
            self._is_open = not element.last
            if element.last:
                self._end(TablePosition(element.commit_ts, element.position))
                passed += self._resolution.settle()
        return passed

    def _end(self, place: TablePosition) -> None:
        self._held.end(place)
        if place.ts > self._passed.ts:
            self._passed = place

    def _rows(self, item: Transaction) -> list[Element]:
        chunk = item.chunk
        if chunk is not None and not chunk.table:
            self._is_loading = False
        passed: list[Run] = []
        held: dict[Shard, list[Run]] = {}
        for run in item.runs:
            routed = self._tables.find(run.table, item.commit_ts)
            route = routed.route
            if route is None:
                passed.append(run)
            elif route.shard in self._held:
                held.setdefault(route.shard, []).append(routed.run(run, route))
            else:
                passed.append(routed.run(run, route))
        for shard, runs in held.items():
            self._held.add(shard, item, runs)
        if item.commit_ts > self._start_ts:
            return [replace(item, rows=Rows(passed))]
        if not passed and not self._is_late_open:
            return []
        self._is_late_open = not item.last
        return [replace(item, rows=Rows(passed))]

    def _ddl(self, ddl: Ddl) -> list[Element]:
        if ddl.actions and isinstance(ddl.actions[0], RenameTables):
            names = [name for pair in ddl.actions[0].pairs for name in pair]
            reject_rename(ddl, [self._tables.route(ddl.commit_ts, *name) for name in names])
            return [ddl]
        route = self._tables.route(ddl.commit_ts, ddl.schema, ddl.table)
        if route is None:
            return [ddl]
        self._tables.clear()
        marks, item = self._change(route, ddl)
        if ddl.commit_ts > self._start_ts or not isinstance(item, Transaction) or self._is_late_open:
            return [*marks, item]
        return marks

    def _change(self, route: Route, ddl: Ddl) -> Replacement:
        if is_alteration(ddl):
            merged = self._merged.changed(route, ddl)
            reject_uncoordinated(merged, route, ddl, self._options.mode, is_loading=self._is_loading)
            before = self._passed if ddl.commit_ts > self._start_ts else None
            return self._coordination.alter(merged, route, ddl, before)
        if route.shard in self._held:
            self._held.add_ddl(route.shard, ddl)
            return Replacement([], emptied(ddl))
        return self._members.change(route, ddl)

    def unlock(self, requests: Sequence[Unlock]) -> None:
        """Resolve these changes at the next call of `durable`. Any thread."""
        self._unlocks = tuple(requests)

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:
        """Read the source again from the first forgotten item that can pass now.

        Raises SinkError if a shard has waited too long.
        """
        self._coordination.check()
        if self._is_open:
            passed: list[Element] = []
        else:
            passed, self._marks = self._marks, []
            passed += self._resolution.unlock(self._unlocks)
            if self._agreement.look(checkpoint) and not self._seeks:
                self._seeks = True
                self._context.seek(TablePosition(checkpoint.ts, checkpoint.position))
        if self._held.is_sought_by(checkpoint):
            reach("shard.sought")
            self._context.seek(min(self._held.sought.values(), key=lambda place: place.ts))
        if not self._is_open:
            passed += self._resolution.settle()
        return passed

    def waits(self) -> Sequence[Wait]:
        feeds = [
            one.feed for merged in self._merged for one in self._agreement.waits(merged) if not one.query
        ]
        return self._held.waits(self._context.sink, self._context.now(), sorted({*feeds}))

    @property
    def waiting(self) -> frozenset[str]:
        """Origin names of shards that can't go on before others have made a change. Any thread."""
        undecided = [
            one for one in self._merged if self._agreement.is_undecided(one) or self._is_unlocked(one)
        ]
        names = {shard.origin_name for one in undecided for shard in one.shards}
        return self._held.waiting - names

    def _is_unlocked(self, merged: MergedTable) -> bool:
        """Return True if its active change is to be resolved by request, so that its shards can go on."""
        owner = merged.sequence.owner
        places = {place_of(merged.number + 1), "" if owner is None else owner.place}
        return any(
            request.lock == merged.id and request.statement in places and not request.remove
            for request in self._unlocks
        )

    def locks(self) -> list[LockStatus]:
        """Return the schema changes that wait for shards. Any thread."""
        statuses = [
            status_of(one, self._held, self._context.sink, self._context.now(), self._agreement.waits(one))
            for one in self._merged
        ]
        return [status for status in statuses if status is not None]

    def close(self) -> None:
        """Keep what waits: it is in the feed's last status."""
