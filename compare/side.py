"""The protocols of sources that are compared.

A `Row` of a source has Python values, as events.Column describes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from ..dialects.read import Key, Summing
from ..events import Checkpoint, Row, Table


class _Log(Protocol):
    reads_at_checkpoint: bool
    """True if rows are read as of the checkpoint given to `view`; else as of now."""

    @property
    def summing(self) -> Summing | None:
        """The server if it computes checksums."""

    def end(self) -> str:
        """Return the present end of the log. All that was read before is at or before it."""

    def has_passed(self, at: str, end: str) -> bool:
        """Return True if the position `at` is at or after `end`."""


class SourceRows(_Log, Protocol):
    """The rows of a source's tables. Methods raise TidemillError."""

    def estimate(self, table: Table) -> int:
        """Return about how many rows the table has; 0 if that isn't known."""

    def view(self, checkpoint: Checkpoint, table: str) -> None:
        """Read rows as of the checkpoint's position of that table, if the source can."""

    def is_ordered(self, table: Table) -> bool:
        """Return True if `page` returns rows by key."""

    def page(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        """Return the next rows by key, at most `limit`. Only if `is_ordered`."""

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        """Return the rows with these keys; and maybe others."""

    def every(self, table: Table) -> Iterator[list[Row]]:
        """Yield all rows, in any order."""


class Source(_Log, Protocol):
    """A feed's source. Methods raise TidemillError."""

    def tables(self, at: Checkpoint) -> list[Table]:
        """Return the tables that the feed follows, ordered by name; as of a checkpoint, if the source can."""

    def of(self, table: Table) -> SourceRows:
        """Return the reader of a table that `tables` has returned."""

    def close(self) -> None: ...
