"""The protocols of the two sides that are compared.

A `Row` of a source has Python values, as events.Column describes them. A target's rows and keys are in the
target's own form, "stored"; `Target.stored` and `Target.source_keys` convert. Rows are equal if and only if
their stored forms are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..events import Checkpoint, Row, Table, TableName

Key: TypeAlias = tuple[Any, ...]


class Settled(NamedTuple):
    """A difference: the stored row of both sides, or the number of such rows in a table without a key."""

    key: Key
    """Stored key; of a table without a key the whole row."""
    source: Any
    target: Any
    is_certain: bool
    """False if the target hasn't applied what the source had logged when it was read."""


class Checksum(NamedTuple):
    """Number of rows, and 128 bits that depend on all their bytes; None if the server can't compute them."""

    rows: int
    bits: tuple[int, ...] | None


class Range(NamedTuple):
    """Rows with a key above `after`, up to and including `upto`; None: no bound."""

    after: Key | None
    upto: Key | None


class Summing(Protocol):
    """A server of the MySQL family: equal rows have equal checksums on each of them."""

    def checksum(self, table: Table, within: Range) -> Checksum:
        """Return the checksum of the rows in a range, in any order. That of equal rows doesn't cancel out."""

    def bound(self, table: Table, within: Range, rows: int) -> Key | None:
        """Return the key of the last of the range's first rows; None if there aren't that many."""

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        """Yield the rows in a range by key, at most `limit` at once."""


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

    def view(self, at: Checkpoint, table: str) -> None:
        """Read rows as of the checkpoint's position of that table, if the source can."""

    def end(self) -> str:
        """Return the present end of the log. All that was read before is at or before it."""

    def has_passed(self, at: str, end: str) -> bool:
        """Return True if the position `at` is at or after `end`."""

    def is_ordered(self, table: Table) -> bool:
        """Return True if `page` returns rows by key."""

    def page(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        """Return the next rows by key, at most `limit`. Only if `is_ordered`."""

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        """Return the rows with these keys; and maybe others."""

    def every(self, table: Table) -> Iterator[list[Row]]:
        """Yield all rows, in any order."""


class Target(Protocol):
    """A sink's target, only read except by `apply`. Methods raise TidemillError."""

    identity: str

    @property
    def summing(self) -> Summing | None:
        """The server if it computes checksums."""

    def close(self) -> None: ...

    def meet(self, source: Source) -> None:
        """Called once, with the source that the target is compared with."""

    def checkpoint(self) -> Checkpoint | None:
        """Return the feed's durable checkpoint; None if there is none."""

    def reading(self) -> AbstractContextManager[Checkpoint]:
        """Return a context in which all reads see the target as of the checkpoint that it yields."""

    def names(self) -> list[TableName]:
        """Return the source's names of the tables here, as far as they can be told from those here."""

    def differs(self, table: Table) -> str | None:
        """Return the differences of the table's columns, as a phrase after "it"; None if there is no such
        table."""

    def common(self, table: Table) -> list[str]:
        """Return the names of the columns that have the same name and type here."""

    def sorts_as(self, table: Table, source: Source) -> bool:
        """Return True if keys have the same order as in the source."""

    def stored(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        """Return rows of the source as they are stored here."""

    def source_keys(self, table: Table, keys: Sequence[Key]) -> list[Key]:
        """Return stored keys as the source has them, without those that it can't have."""

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        """Yield the stored rows in a range of stored keys, at most `limit` at once."""

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        """Return the stored rows with these keys; and maybe others."""

    def every(self, table: Table) -> Iterator[list[Row]]:
        """Yield all stored rows, in any order."""

    def begin_script(self) -> list[str]:
        """Return the statements at the beginning of a script of repairs."""

    def repair(self, table: Table, found: Settled) -> list[str]:
        """Return the statements that make a row here the source's."""

    def apply(self, table: Table, found: Settled) -> bool:
        """Run them in a transaction; return False, changing nothing, if the row isn't `found.target` any
        more."""
