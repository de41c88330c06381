"""A sink's own choice among the tables of its feed, as a stage."""

from __future__ import annotations

from collections.abc import Sequence

from ..chain import Barrier, Element, Lag, StageContext
from ..events import Checkpoint, Ddl, RowChange, Table, Transaction, Wait
from .filter import TableFilter


class TableStage:
    """Drops what doesn't concern the tables of one sink: rows, schema changes, and parts of a snapshot."""

    name = "table filter"

    def __init__(self, tables: TableFilter) -> None:
        self._tables = tables

    def open(self, context: StageContext) -> None:
        """Nothing is kept."""

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        return [kept for item in batch if (kept := self._kept(item)) is not None]

    def _kept(self, item: Element) -> Element | None:
        if isinstance(item, (Barrier, Lag)):
            return item
        if isinstance(item, Ddl):
            if self._tables.matches(item.schema, item.table):
                return item
            return Transaction(item.commit_ts, item.start_ts, item.source, [], item.position, item.last)
        if item.chunk is not None and item.chunk.table and not self._tables.matches_full(item.chunk.table):
            return None
        rows = self._rows(item.rows)
        if len(rows) == len(item.rows):
            return item
        return Transaction(
            item.commit_ts, item.start_ts, item.source, rows, item.position, item.last, item.chunk
        )

    def _rows(self, rows: Sequence[RowChange]) -> list[RowChange]:
        kept: list[RowChange] = []
        table: Table | None = None
        is_wanted = False
        for row in rows:
            if row.table is not table:  # asked once for the rows of a table that come together
                table = row.table
                is_wanted = self._tables.matches(table.schema, table.name)
            if is_wanted:
                kept.append(row)
        return kept

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:  # noqa: ARG002
        return ()

    def waits(self) -> Sequence[Wait]:
        return ()

    def close(self) -> None:
        """Nothing is held."""
