"""The part of a source that passes each table on to the source that has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..dialects.read import Key, Summing
from ..events import Checkpoint, Row, Table
from .side import Source


class ByTable:
    """Rows are read as of now; checksums, and the rows of a table, are those of `of(table)`."""

    reads_at_checkpoint = False
    summing: Summing | None = None

    def of(self, table: Table) -> Source:
        """Return the source of that table."""
        raise NotImplementedError

    def view(self, checkpoint: Checkpoint, table: str) -> None:
        """Do nothing: rows are read as of now."""

    def estimate(self, table: Table) -> int:
        return self.of(table).estimate(table)

    def is_ordered(self, table: Table) -> bool:
        return self.of(table).is_ordered(table)

    def page(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        return self.of(table).page(table, after, limit)

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        return self.of(table).rows_of(table, keys)

    def every(self, table: Table) -> Iterator[list[Row]]:
        return self.of(table).every(table)
