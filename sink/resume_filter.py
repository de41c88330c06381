"""Filter for items that a sink has already: it may be ahead of the source, and of the snapshot."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final, Literal

from msgspec.structs import replace

from ..chain import Element, Keep, Lag, Mark, Stage, StageContext, emptied, narrowed
from ..chain.selection.former import former_tables
from ..codec.item_passes import whole
from ..errors import InvariantViolated
from ..events import (
    CREATED,
    FORMER,
    PENDING,
    REST,
    WHOLE,
    Checkpoint,
    Chunk,
    Ddl,
    DropTable,
    Item,
    OrderedKey,
    Row,
    RowChange,
    Rows,
    Run,
    SnapshotProgress,
    Table,
    Transaction,
    computed_columns,
    key_order,
    noted_key,
    parked_tables,
    progress_of,
    runs_of,
)
from .table_load import (
    creates_by_statement,
    creates_for_snapshot,
    needed,
    new_tables,
    progress_after,
    progress_after_chunk,
    renamed_tables,
    tables_of,
)

START = Checkpoint(ts=0, position="", loading={})
"""Checkpoint of an empty target, before the snapshot."""


class ResumeFilter(Stage):
    """Passes only the items and rows that one sink's target lacks. The first stage of every chain.

    Its invariant: the target contains the rows of the tables in `checkpoint.loading` (up to the key given
    there) as of `checkpoint.position`, and nothing else; with `loading` None, of all tables.
    A table in `checkpoint.tables` is at the position given there. So, when several sinks share a source
    or a snapshot is resumed,

    * items at or below the checkpoint's ts, or their table's ts, are applied already: they are dropped;
    * while loading, changes of rows that aren't loaded are dropped, as the snapshot contains those rows in
    the state after these changes; so are schema changes of a table that doesn't exist yet;
    * rows of a snapshot that are loaded already are dropped;
    * everything of a parked table is dropped, and of one that the target lacks, as its patterns are new.

    The checkpoint keeps the ts of the last schema change that the source had noted.
    """

    name = "resume filter"

    def open(self, context: StageContext) -> None:
        start = context.checkpoint
        self._start = self._at = start
        self._had = former_tables(start.stages.get(FORMER, ""))
        """True for a table that the target has unless the progress says otherwise; None: for all."""
        self._parked = frozenset(parked_tables(start.loading))
        self._absent: set[str] = set()
        """Tables that are listed only here: the target lacks them, and they aren't loaded."""
        self._owns_loading = False
        self._ts = start.ts
        self._inside: Item | None = None  # the latest part of a transaction that is still open
        self._behind = [name for name, place in start.tables.items() if place.ts < start.ts]
        self._ahead_ts = max([start.ts, *(place.ts for place in start.tables.values())])
        self._is_late_open = False  # a transaction with late rows continues
        self._reloaded: set[str] = set()
        """Tables to be loaded again: their rows are other ones by now than those of the progress here."""

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        """Return the items that the target lacks.

        Raises InvariantViolated if items aren't in commit order, or a transaction isn't contiguous.
        """
        if self._ts > self._ahead_ts and self._at.is_loaded and self._is_plain(batch):
            return self._without_parked(batch) if self._at.loading is not None else batch
        passed: list[Element] = []
        for item in batch:
            if isinstance(item, Mark):
                passed.append(item)
            elif item.commit_ts > self._start.ts:
                if self._behind:
                    passed += self._caught_up()
                if isinstance(item, Ddl) and item.noted:
                    passed.append(Keep(noted_key(item.source), str(item.commit_ts)))
                    has_effect = item.actions or item.refusal or item.reload
                    item = replace(item, noted=False) if has_effect else emptied(item)
                passed.append(self._admit(item))
            elif self._behind and (late := self._late(item)) is not None:
                passed.append(late)
        if self._behind and batch:
            item = batch[-1]  # items of the same commit ts came with it
            if not isinstance(item, Mark) and item.last and item.commit_ts == self._start.ts:
                passed += self._caught_up()
        return passed

    def _is_plain(self, batch: Sequence[Element]) -> bool:
        """Return True for whole transactions in order, after everything that the target has.

        They pass without further checks, which saves half a microsecond each.
        """
        if self._inside is not None:
            return False
        first = whole(batch, self._ts)
        if not first.number or first.number < len(batch):
            return False
        self._ts = first.ts
        return True

    def _without_parked(self, batch: Sequence[Element]) -> Sequence[Element]:
        """Return whole transactions without the rows of parked tables."""
        parked = self._parked
        return [
            narrowed(item, lambda run: run.origin_name not in parked)
            for item in batch
            if isinstance(item, Transaction)
        ]

    def _caught_up(self) -> list[Lag]:
        """Note that no table lags behind the sink's checkpoint any more."""
        behind, self._behind = self._behind, []
        return [Lag(name, None) for name in behind]

    def _admit(self, item: Item) -> Item:
        """Return the item with the remaining rows; without rows it still advances the checkpoint."""
        self._check_order(item)
        loading = self._at.loading
        self._ts = item.commit_ts
        self._inside = None if item.last else item
        if self._reloaded and isinstance(item, Transaction):
            item = without_tables(item, self._reloaded)
        passed = uncovered(self._start, item) if item.commit_ts <= self._ahead_ts else item
        if self._had is not None and loading is not None:
            loading = self._list_absent(item, loading, self._had)
        if isinstance(passed, Ddl):
            ddl = None
            if not (passed.origin_name in self._absent and DropTable() in passed.actions):
                ddl = needed(passed, {REST: WHOLE} if loading is None else loading)
            if ddl is not None and ddl.reload and not (ddl.if_exists or computed_columns(ddl.actions)):
                self._reloaded.update(tables_of(ddl))  # no target can do without
            passed = emptied(passed) if ddl is None else ddl
        elif passed.chunk is not None:
            is_parked = passed.chunk.table in self._parked
            passed = _with_rows(passed, []) if is_parked else self._chunk(passed, passed.chunk, loading)
        elif loading is not None:
            passed = self._catch_up(passed, loading)
        if loading is not None and changes_progress(item):
            self._at = advance(self._at, item, owns_loading=self._owns_loading)
            self._owns_loading |= self._at.loading is not loading
            if isinstance(item, Ddl):
                self._parked = frozenset(parked_tables(self._at.loading))
            if FORMER not in self._at.stages:
                self._had = None
        return passed

    def _list_absent(
        self, item: Item, loading: SnapshotProgress, had: Callable[[str], bool]
    ) -> SnapshotProgress:
        """List tables of the item that the target lacks as the former patterns didn't match them: nothing of
        them passes until they are loaded, created by a statement, or gone at the end of the load."""
        absent, gone, names = self._absent & loading.keys(), set[str](), list[str]()
        if isinstance(item, Transaction):
            if item.chunk is None:
                names = [run.origin_name for run in item.runs]
            elif not item.chunk.table:
                gone = absent
        elif creates_by_statement(item):
            gone = absent & {item.origin_name}
        elif not (item.reload or creates_for_snapshot(item)):
            names = [*renamed_tables(item)] or [item.origin_name]
        new = {name for name in names if name not in loading and not had(name)}
        self._absent = (absent | new) - gone
        if new or gone:
            kept = {name: have for name, have in loading.items() if name not in gone}
            loading = kept | dict.fromkeys(new, PENDING)
            self._at = replace(self._at, loading=loading)
        return loading

    def _late(self, item: Item) -> Item | None:
        """Return the part of an item at or below the checkpoint that lagging tables lack."""
        left = uncovered(self._start, item)
        goes_on, self._is_late_open = self._is_late_open, False
        if isinstance(left, Transaction) and not left.rows and not goes_on:
            return None
        self._is_late_open = not item.last
        return left

    def _check_order(self, item: Item) -> None:
        before = self._inside
        if before is None:
            if item.commit_ts < self._ts:
                raise InvariantViolated(f"commit ts {item.commit_ts} came after {self._ts}")
        elif (item.commit_ts, item.start_ts) != (before.commit_ts, before.start_ts):
            raise InvariantViolated(
                f"transaction {item.commit_ts} came inside the pieces of {before.commit_ts}"
            )
        elif isinstance(before, Transaction) and _loads(item) != _loads(before):
            raise InvariantViolated(f"the pieces of transaction {item.commit_ts} load different tables")

    def _chunk(self, item: Transaction, chunk: Chunk, loading: SnapshotProgress | None) -> Transaction:
        if not chunk.table:
            return item
        have = progress_of(loading, chunk.table)
        if have is None or have == CREATED:
            return item
        if have.last is None:
            return _with_rows(item, [])
        if chunk.after is not None:
            if have.last <= chunk.after:
                return item
            return _with_rows(item, [row for row in item.rows if not _within(row, row.after, have.last)])
        # The rows of a chunk are in key order.
        applied = 0
        while applied < len(item.rows) and _within(item.rows[applied], item.rows[applied].after, have.last):
            applied += 1
        return _with_rows(item, item.rows[applied:]) if applied else item

    def _catch_up(self, item: Transaction, loading: SnapshotProgress) -> Transaction:
        runs: list[Run] = []
        for run in item.runs:
            have = progress_of(loading, run.origin_name)
            if have is None or have == CREATED:
                continue
            if have.last is None:
                runs.append(run)
            else:
                parts = [_loaded_part(change, have.last) for change in run.changes()]
                runs += runs_of([part for part in parts if part is not None])
        return _with_rows(item, Rows(runs))


def changes_progress(item: Item) -> bool:
    """Return True if the snapshot progress may change once the target has `item`.

    A statement about several tables is a transaction of several schema changes.
    """
    return item.last or isinstance(item, Ddl)


def advance(checkpoint: Checkpoint, item: Item, *, owns_loading: bool = False) -> Checkpoint:
    """Return the checkpoint after `item` is applied at `checkpoint`: inside a transaction, only its snapshot
    progress is another.

    With `owns_loading` the progress in `checkpoint` is changed in place: with very many tables a copy of it
    for each one takes long.
    """
    loading, stages = checkpoint.loading, checkpoint.stages
    if loading is not None:
        if isinstance(item, Transaction):
            chunk = item.chunk
            if chunk is not None:
                loading = progress_after_chunk(loading, chunk, owned=owns_loading)
                if not chunk.table and FORMER in stages:
                    stages = {key: state for key, state in stages.items() if key != FORMER}
        elif not creates_for_snapshot(item):
            new = new_tables(item, loading) if FORMER in stages else []
            loading = dict.fromkeys(new, WHOLE) | progress_after(loading, item)
        elif progress_of(loading, name := item.origin_name) is None and (
            name not in loading or loading[name].parked is None
        ):
            loading = loading if owns_loading else loading.copy()
            loading[name] = CREATED
    ts, position = (item.commit_ts, item.position) if item.last else (checkpoint.ts, checkpoint.position)
    return Checkpoint(
        ts,
        position,
        loading,
        checkpoint.source,
        checkpoint.owner,
        checkpoint.tables,
        stages,
    )


def uncovered(checkpoint: Checkpoint, item: Item) -> Item:
    """Return the item without the rows that a target at `checkpoint` has."""
    covers, ts = checkpoint.covers, item.commit_ts
    if isinstance(item, Ddl):
        return emptied(item) if covers(item.origin_name, ts) else item
    return narrowed(item, lambda run: not covers(run.origin_name, ts))


def lacking(checkpoint: Checkpoint, items: Sequence[Item]) -> Sequence[Item]:
    """Return the items, or parts of them, that a target at `checkpoint` lacks."""
    if checkpoint.tables:
        return [uncovered(checkpoint, item) for item in items]
    ts = checkpoint.ts
    return [item for item in items if item.commit_ts > ts]


def without_tables(item: Transaction, names: Container[str]) -> Transaction:
    """Return the transaction without rows of these tables, and without their snapshots' progress."""
    if item.chunk is not None and item.chunk.table in names:
        item = replace(item, chunk=None)
    return narrowed(item, lambda run: run.table.full_name not in names)


def _loads(item: Item) -> str | None:
    return item.chunk.table if isinstance(item, Transaction) and item.chunk is not None else None


def _with_rows(item: Transaction, rows: Sequence[RowChange]) -> Transaction:
    return replace(item, rows=rows)


def _within(change: RowChange, row: Row | None, last: OrderedKey) -> bool:
    """Return True if the key of `row` is at or below `last`."""
    return row is not None and _order_of(change.table)(row) <= last


_orders: dict[int, tuple[Table, Callable[[Row], OrderedKey]]] = {}
"""By the identity of the table, as hashing one takes longer than comparing keys."""
_MAX_ORDERS: Final = 10_000


def _order_of(table: Table) -> Callable[[Row], OrderedKey]:
    ordering = _orders.get(id(table))
    if ordering is not None and ordering[0] is table:
        return ordering[1]
    order = key_order(table)
    if order is None:
        raise InvariantViolated(f"table {table.full_name} is loaded in part, and its keys can't be compared")
    if len(_orders) >= _MAX_ORDERS:
        _orders.clear()
    _orders[id(table)] = table, order
    return order


def _loaded_part(change: RowChange, last: OrderedKey) -> RowChange | None:
    """Return a change's effect on the rows with keys up to `last`; an update may move a row across that
    bound."""
    before = change.before if _within(change, change.before, last) else None
    after = change.after if _within(change, change.after, last) else None
    if before is None and after is None:
        return None
    op: Literal["insert", "update", "delete"]
    op = "insert" if before is None else "delete" if after is None else "update"
    return replace(change, op=op, before=before, after=after)
