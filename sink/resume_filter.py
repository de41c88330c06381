"""What a sink still lacks: it may be ahead of the source, and of the snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from ..errors import InvariantViolated
from ..events import (
    Checkpoint,
    Chunk,
    CreateTable,
    Ddl,
    Item,
    Row,
    RowChange,
    Rows,
    Run,
    SnapshotProgress,
    TableProgress,
    Transaction,
    runs_of,
)

START = Checkpoint(ts=0, position="", loading={})
"""Of a target that holds nothing, before the snapshot."""

CREATED = TableProgress(last=())
"""A table that is there and has no rows yet: no key is at or below the empty tuple."""


class ResumeFilter:
    """Lets through to one sink what its target lacks, and says what the target is then at.

    The invariant it keeps: the target holds the rows of the tables in `checkpoint.loading` (up to the
    key given there) as of `checkpoint.position`, and nothing else; with `loading` None, of all tables.
    So, when several sinks share a source or a snapshot is resumed,

    * what is at or below the checkpoint's ts has been applied: dropped;
    * while loading, changes of rows that aren't loaded are dropped, as the snapshot brings those rows
      later, in the state after these changes; so is the DDL of a table that isn't there;
    * rows of a snapshot that are loaded already are dropped.
    """

    def __init__(self, checkpoint: Checkpoint | None, source: str = "") -> None:
        """`source` is the identity that new checkpoints carry."""
        start = checkpoint or START
        self._resume_ts = start.ts
        self._at = Checkpoint(start.ts, start.position, start.loading, source or start.source)
        self._inside: Item | None = None  # the latest piece of a transaction that is still open

    @property
    def checkpoint(self) -> Checkpoint | None:
        """What the target is at once everything admitted is applied; None inside a transaction."""
        return self._at if self._inside is None else None

    def admit(self, item: Item) -> Item | None:
        """The item, or what is left of it, or None. A transaction whose rows all go stays, without
        them: it moves the checkpoint.

        Raises InvariantViolated if items don't come in commit order and in one piece.
        """
        if item.commit_ts <= self._resume_ts:
            return None
        self._check_order(item)
        admitted: Item | None
        if isinstance(item, Ddl):
            admitted = self._ddl(item)
        elif item.chunk is not None:
            admitted = self._chunk(item, item.chunk)
        elif self._at.loading is not None:
            admitted = self._catch_up(item, self._at.loading)
        else:
            admitted = item
        self._inside = None if item.last else item
        if item.last:
            self._at = advance(self._at, item)
        return admitted

    def _check_order(self, item: Item) -> None:
        before = self._inside
        if before is None:
            if item.commit_ts < self._at.ts:
                raise InvariantViolated(f"commit ts {item.commit_ts} came after {self._at.ts}")
        elif (item.commit_ts, item.start_ts) != (before.commit_ts, before.start_ts):
            raise InvariantViolated(
                f"transaction {item.commit_ts} came inside the pieces of {before.commit_ts}"
            )
        elif isinstance(before, Transaction) and _loads(item) != _loads(before):
            raise InvariantViolated(f"the pieces of transaction {item.commit_ts} load different tables")

    def _ddl(self, ddl: Ddl) -> Ddl | None:
        loading = self._at.loading
        loaded = loading is None or ddl.full_name in loading
        return ddl if loaded != creates_for_snapshot(ddl) else None

    def _chunk(self, item: Transaction, chunk: Chunk) -> Transaction:
        loading = self._at.loading
        if not chunk.table:
            return item
        have = TableProgress() if loading is None else loading.get(chunk.table)
        if have is None or have == CREATED:
            return item
        if have.last is None:
            return _with_rows(item, [])
        # The rows of a chunk come in the order of their keys.
        there = 0
        while there < len(item.rows) and _within(item.rows[there], item.rows[there].after, have.last):
            there += 1
        return _with_rows(item, item.rows[there:]) if there else item

    def _catch_up(self, item: Transaction, loading: SnapshotProgress) -> Transaction:
        runs: list[Run] = []
        for run in item.runs:
            have = loading.get(run.table.full_name)
            if have is None or have == CREATED:
                continue
            if have.last is None:
                runs.append(run)
            else:
                parts = [_loaded_part(change, have.last) for change in run.changes()]
                runs += runs_of([part for part in parts if part is not None])
        return _with_rows(item, Rows(runs))


def advance(checkpoint: Checkpoint, item: Item) -> Checkpoint:
    """What a target at `checkpoint` is at once `item`, the last piece of its transaction, is applied."""
    loading = checkpoint.loading
    if loading is not None:
        if isinstance(item, Transaction):
            chunk = item.chunk
            if chunk is not None and not chunk.table:
                loading = None
            elif chunk is not None and not covers(loading.get(chunk.table), chunk.loaded):
                loading = {**loading, chunk.table: chunk.loaded}
        elif creates_for_snapshot(item) and item.full_name not in loading:
            loading = {**loading, item.full_name: CREATED}
    return Checkpoint(item.commit_ts, item.position, loading, checkpoint.source)


def creates_for_snapshot(ddl: Ddl) -> bool:
    return not ddl.query and any(isinstance(action, CreateTable) for action in ddl.actions)


def covers(have: TableProgress | None, wanted: TableProgress) -> bool:
    """Whether a table loaded as far as `have` has all that `wanted` says."""
    if have is None:
        return False
    return have.last is None or (wanted.last is not None and wanted.last <= have.last)


def _loads(item: Item) -> str | None:
    return item.chunk.table if isinstance(item, Transaction) and item.chunk is not None else None


def _with_rows(item: Transaction, rows: Sequence[RowChange]) -> Transaction:
    return replace(item, rows=rows)


def _within(change: RowChange, row: Row | None, last: tuple[int, ...]) -> bool:
    """Whether `row` is among the rows with keys up to `last`."""
    return row is not None and tuple([row[index] for index in change.table.key]) <= last


def _loaded_part(change: RowChange, last: tuple[int, ...]) -> RowChange | None:
    """What a change does to the rows with keys up to `last`: an update may carry a row over that bound."""
    before = change.before if _within(change, change.before, last) else None
    after = change.after if _within(change, change.after, last) else None
    if before is None and after is None:
        return None
    op: Literal["insert", "update", "delete"]
    op = "insert" if before is None else "delete" if after is None else "update"
    return replace(change, op=op, before=before, after=after)
