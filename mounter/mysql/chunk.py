"""A chunk of a table's rows, made exact as of the position where it is delivered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ...errors import InvariantViolated
from ...events import OrderedKey, Row, RowChange, Run, Table, TableProgress, key_order


class ChunkOverlay:
    """The last images of rows that were changed while the chunk was read; they replace the chunk's rows."""

    def __init__(self, after: OrderedKey) -> None:
        """The chunk's keys are above `after`."""
        self.after = after
        self._images: dict[OrderedKey, RowChange | None] = {}
        self._table: Table | None = None

    def add(self, changes: Sequence[RowChange]) -> None:
        """Add logged changes, in order; before the chunk's rows."""
        images = self._images
        for change in changes:
            key = self._key(change.table)
            if change.before is not None:
                images[key(change.before)] = None
            if change.after is not None:
                images[key(change.after)] = change

    def unchanged(self, run: Run) -> Run:
        """Return the rows of the chunk that weren't changed."""
        images = self._images
        if not images:
            return run
        key = self._key(run.table)
        kept = [
            change for change in run.changes() if change.after is not None and key(change.after) not in images
        ]
        return run if len(kept) == len(run) else Run(run.commit_ts, run.start_ts, run.table, "insert", kept)

    def changed(self, loaded: TableProgress) -> list[RowChange]:
        """Return the rows that were changed, in their last state, as inserts of the chunk."""
        last = loaded.last
        return [
            replace(change, op="insert", before=None)
            for key, change in self._images.items()
            if change is not None and key > self.after and (last is None or key <= last)
        ]

    def _key(self, table: Table) -> Callable[[Row], OrderedKey]:
        if table is not self._table:
            order = key_order(table)
            if order is None:
                raise InvariantViolated(f"{table.full_name} was read in chunks without a comparable key")
            self._table, self._order = table, order
        return self._order
