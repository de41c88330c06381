"""The rows of several tables of MySQL or MariaDB servers as those of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from heapq import merge
from operator import xor
from typing import NamedTuple

from ..dialects.mysql.key_range import is_ordered
from ..dialects.mysql.server_rows import ServerRows
from ..dialects.read import Checksum, Key, Range, Summing
from ..errors import ConfigError
from ..events import Checkpoint, OrderedKey, Row, Table, key_order, key_table
from .side import Source


class UnionTable(NamedTuple):
    """One of the tables, with the columns of all."""

    reader: ServerRows
    rows_estimated: int


class Union:
    """A source with one table. Its keys are in order if Python knows the order of each column's values."""

    reads_at_checkpoint = False

    def __init__(self, source: Source, parts: Sequence[UnionTable]) -> None:
        """`source` tells the end of the log."""
        self._parts = parts
        self.end = source.end
        self.has_passed = source.has_passed
        self.summing: Summing | None = UnionSums(parts)

    def of(self, table: Table) -> Source:  # noqa: ARG002
        return self

    def close(self) -> None:
        """Do nothing: the sources are closed by whoever opened them."""

    def tables(self) -> list[Table]:
        raise ConfigError("a union has no tables of its own")

    def view(self, checkpoint: Checkpoint, table: str) -> None:
        """Do nothing: rows are read as of now."""

    def estimate(self, table: Table) -> int:  # noqa: ARG002
        return sum(part.rows_estimated for part in self._parts)

    def is_ordered(self, table: Table) -> bool:
        return is_ordered(table)

    def page(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        order = key_order(table)
        pages = [part.reader.page(table, Range(after, None), limit) for part in self._parts]
        return [row for row, _ in zip(merge(*pages, key=order), range(limit), strict=False)]

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        return [row for part in self._parts for row in part.reader.rows_of(table, keys)]

    def every(self, table: Table) -> Iterator[list[Row]]:
        for part in self._parts:
            yield from part.reader.every(table)


class UnionSums:
    """Checksums of a union. Those of the parts are sums already, so they add up."""

    def __init__(self, parts: Sequence[UnionTable]) -> None:
        self._readers = [part.reader for part in parts]
        kinds = {reader.is_mariadb for reader in self._readers}
        self.is_mariadb = kinds.pop() if len(kinds) == 1 else None
        """None if some servers are MariaDB and some MySQL."""

    def checksum(self, table: Table, within: Range) -> Checksum:
        sums = [reader.checksum(table, within) for reader in self._readers]
        bits = [one.bits for one in sums if one.bits is not None]
        whole = tuple(reduce(xor, column) for column in zip(*bits, strict=True))
        return Checksum(sum(one.rows for one in sums), whole if len(bits) == len(sums) else None)

    def bound(self, table: Table, within: Range, rows: int) -> Key | None:
        """Return a key that at most that number of rows of the range are up to, and at least one.

        None only if there aren't more in the range.
        """
        share = max(1, rows // len(self._readers))
        bounds = [reader.bound(table, within, share) for reader in self._readers]
        return min([one for one in bounds if one is not None], key=_order_of(table), default=None)

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        """Yield the rows of one part after the other."""
        for reader in self._readers:
            yield from reader.between(table, within, limit)


def _order_of(table: Table) -> Callable[[Key], OrderedKey]:
    """Return the order of keys of a table whose keys have one."""
    order = key_order(key_table(table))
    assert order is not None
    return order
