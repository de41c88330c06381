"""Checkpoint of a sink's target, advanced as items go into batches."""

from __future__ import annotations

from msgspec.structs import replace

from ..chain import Keep, Lag
from ..errors import InvariantViolated
from ..events import Checkpoint, Ddl, Item, TablePosition, Transaction, Ts
from .resume_filter import advance, changes_progress
from .table_load import reloaded


class Reached:
    """The checkpoint that is valid once all added items are applied."""

    def __init__(self, start: Checkpoint) -> None:
        self._at = start  # without tables; as of before `_last`
        self._owns_loading = False  # False if the progress in `_at` is a part of other checkpoints too
        self._last: Item | None = None
        self._ts = start.ts
        self._open = False
        self._behind = {name: place for name, place in start.tables.items() if place.ts < start.ts}
        self._ahead = {name: place for name, place in start.tables.items() if place.ts > start.ts}
        self._is_plain = self._at.is_loaded and not (self._behind or self._ahead)
        self._late: set[str] = set()
        """Tables in the parts of a late transaction."""
        self._reloads: list[Ddl] = []
        """Schema changes whose tables are to be loaded again, which the checkpoint doesn't list as such
        yet."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint; None inside a transaction."""
        if self._open:
            return None
        if self._last is not None:
            self._at = advance(self._at, self._last)
            self._last = None
        for ddl in self._reloads:
            self._at = replace(self._at, loading=reloaded(self._at.loading, ddl))
            self._is_plain = False
        self._reloads = []
        self._owns_loading = False
        checkpoint = self._at
        tables = {**self._behind, **self._ahead}
        if tables or checkpoint.tables:
            return replace(checkpoint, tables=tables)
        return checkpoint

    @property
    def plain_ts(self) -> Ts | None:
        """The ts from which on whole transactions may be added by adding the last one; None if each must
        be."""
        return self._ts if self._is_plain and not self._open else None

    def add(self, item: Item) -> None:
        """Advance past an item. Raises InvariantViolated for one below earlier items, unless a Lag allows
        it."""
        ts = item.commit_ts
        if isinstance(item, Ddl) and item.reload:
            self.load_again(item)
        if self._is_plain and item.last and ts >= self._ts:
            self._last, self._ts, self._open = item, ts, False
            return
        if self._behind and ts <= self._ts:
            self._add_late(item)
        elif ts < self._ts:
            raise InvariantViolated(f"commit ts {ts} came after {self._ts}, and no table lags behind")
        else:
            self._add_next(item)
        self._open = not item.last
        self._is_plain = self._at.is_loaded and not (self._behind or self._ahead)

    def _add_next(self, item: Item) -> None:
        loading = self._at.loading
        if loading is not None and changes_progress(item):
            self._at = advance(self._at, item, owns_loading=self._owns_loading)
            self._owns_loading |= self._at.loading is not loading
        elif item.last:
            self._last = item
        if item.last:
            self._ts = item.commit_ts
            if self._ahead:
                self._ahead = {name: place for name, place in self._ahead.items() if place.ts > self._ts}

    def mark(self, lag: Lag) -> None:
        if lag.at is None:
            self._behind.pop(lag.table, None)
        else:
            self._behind[lag.table] = lag.at
        self._is_plain = False  # until the next item changes it

    def keep(self, mark: Keep) -> None:
        """Note the state of a stage, as of the next item."""
        if self._last is not None:
            self._at, self._last = advance(self._at, self._last), None
        stages = {**self._at.stages, mark.key: mark.state}
        self._at = replace(self._at, stages={key: state for key, state in stages.items() if state})

    def load_again(self, ddl: Ddl) -> None:
        """Note that the tables of a schema change are to be loaded again, as of the next checkpoint."""
        self._reloads.append(ddl)
        self._is_plain = False

    def _add_late(self, item: Item) -> None:
        if isinstance(item, Transaction):
            self._late.update(run.origin_name for run in item.runs)
        else:
            self._late.add(item.origin_name)
        if item.last:
            for name in self._late & self._behind.keys():
                self._behind[name] = TablePosition(item.commit_ts, item.position)
            self._late.clear()
