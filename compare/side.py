"""The protocol of sources that are compared.

A `Row` of a source has Python values, as events.Column describes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from ..dialects.read import Key, Summing
from ..events import Checkpoint, Row, Table


class Source(Protocol):
    """A feed's source. Methods raise TidemillError."""

    reads_at_checkpoint: bool
    """True if rows are read as of the checkpoint given to `view`; else as of now."""

    @property
    def summing(self) -> Summing | None:
        """The server if it computes checksums."""

    def of(self, table: Table) -> Source:
        """Return the source of that table: this one, or the one of several that has it."""

    def close(self) -> None: ...

    def tables(self) -> list[Table]:
        """Return the tables that the feed follows, ordered by name."""

    def estimate(self, table: Table) -> int:
        """Return about how many rows the table has; 0 if that isn't known."""

    def view(self, checkpoint: Checkpoint, table: str) -> None:
        """Read rows as of the checkpoint's position of that table, if the source can."""

    def end(self) -> str:
        """Return the present end of the log. All that was read before is at or before it."""

    def has_passed(self, position: str, end: str) -> bool:
        """Return True if the position `position` is at or after `end`."""

    def is_ordered(self, table: Table) -> bool:
        """Return True if `page` returns rows by key."""

    def page(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        """Return the next rows by key, at most `limit`. Only if `is_ordered`."""

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        """Return the rows with these keys; and maybe others."""

    def every(self, table: Table) -> Iterator[list[Row]]:
        """Yield all rows, in any order."""
