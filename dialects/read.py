"""The protocol of databases whose rows are read: to compare them with their source, and to repair them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..events import Checkpoint, Row, Table, TableName, Ts
from .syncpoints import Syncpoint

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

    @property
    def is_mariadb(self) -> bool | None:
        """True for MariaDB, False for MySQL; None for several servers that differ."""

    def checksum(self, table: Table, within: Range) -> Checksum:
        """Return the checksum of the rows in a range, in any order. That of equal rows doesn't cancel out."""

    def bound(self, table: Table, within: Range, rows: int) -> Key | None:
        """Return the key of the last of the range's first rows; None if there aren't that many."""

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        """Yield the rows in a range by key, at most `limit` at once."""


class Reader(Protocol):
    """The tables of a feed in a database, only read except by `apply`. Methods raise TidemillError.

    Rows and keys are in the database's own form, "stored"; `stored` and `source_keys` convert. Rows are equal
    if and only if their stored forms are.
    """

    identity: str

    @property
    def summing(self) -> Summing | None:
        """The server if it computes checksums."""

    def close(self) -> None: ...

    def meet(self, source: Summing | None) -> None:
        """Called once, with the server that the rows are compared with, if it computes checksums."""

    def checkpoint(self) -> Checkpoint | None:
        """Return the feed's durable checkpoint; None if there is none."""

    def reading(self) -> AbstractContextManager[Checkpoint]:
        """Return a context in which all reads see the target as of the checkpoint that it yields."""

    def holding(self, past_ts: int | None = None) -> AbstractContextManager[Checkpoint]:
        """Return a context like `reading`, for the whole comparison: `reading` within it sees the same.

        `past_ts` is the `secondary_ts` of a syncpoint: all reads see the target as of it.
        """

    def ahead(self, checkpoint: Checkpoint) -> Ts | None:
        """Return the commit ts of the last transaction that the target has after a checkpoint, in a context
        of `reading`; None if it has exactly what the checkpoint says."""

    def last_syncpoint(self) -> Syncpoint | None:
        """Return the feed's newest syncpoint; None if there is none, or if no view of the target needs
        one."""

    def names(self) -> list[TableName]:
        """Return the source's names of the tables here, as far as they can be told from those here."""

    def differs(self, table: Table) -> str | None:
        """Return the differences of the table's columns, as a phrase after "it"; None if there is no such
        table."""

    def common(self, table: Table) -> list[str]:
        """Return the names of the columns that have the same name and type here."""

    def sorts_as(self, table: Table, source: Summing | None) -> bool:
        """Return True if keys have the same order as in the source; `source` is its server, if that computes
        checksums."""

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

    def repair(self, table: Table, difference: Settled) -> list[str]:
        """Return the statements that make a row here the source's."""

    def apply(self, table: Table, difference: Settled) -> bool:
        """Run them in a transaction; return False, changing nothing, if the row isn't `found.target` any
        more."""
