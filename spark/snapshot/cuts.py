"""Bounds that divide a table by the first integer column of its primary key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from ...codec.mysql.tokens import qualified as quoted
from ...dialects.mysql.client import Session, is_mariadb, query
from ...events import Table

_PROBE_ROWS: Final = 1000
"""Number of keys stepped over to measure their density."""


class _Stretch(Struct, frozen=True):
    """Keys above `after` and up to `up_to`, with an estimate of their rows."""

    after: int
    up_to: int
    rows: int


def cuts(
    session: Session, table: Table, chunk_rows: int, after: int | None = None, up_to: int | None = None
) -> list[int]:
    """Return the bounds between chunks: values of the first key column above `after` and up to `up_to`."""
    keys = Keys(session, table)
    low, high = keys.ends()
    if low is None or high is None:
        return []
    low = low - 1 if after is None else max(low - 1, after)
    high = high if up_to is None else min(high, up_to)
    found: list[int] = []
    rows = 0
    for stretch in _stretches(keys, low, high, chunk_rows):
        if rows and rows + stretch.rows > chunk_rows:
            found.append(stretch.after)
            rows = 0
        rows += stretch.rows
    return found


def _stretches(keys: Keys, after: int, up_to: int, chunk_rows: int) -> Iterator[_Stretch]:
    """Halve the range until each part is small enough: keys may be unevenly dense."""
    rows = keys.rows(after, up_to)
    if rows <= chunk_rows or up_to - after <= 1:
        yield _Stretch(after, up_to, rows)
        return
    middle = (after + up_to) // 2
    yield from _stretches(keys, after, middle, chunk_rows)
    yield from _stretches(keys, middle, up_to, chunk_rows)


class Keys:
    """Queries about the first column of a table's key."""

    def __init__(self, session: Session, table: Table) -> None:
        self._session = session
        self._column = quoted(table.columns[table.key[0]].name)
        self._table = f"FROM {quoted(table.schema, table.name)}"
        self._from = f"{self._table} FORCE INDEX (PRIMARY)"
        self._is_unique = len(table.key) == 1
        self._estimate = 8 if is_mariadb(session) else 9
        """Place of the rows in what EXPLAIN returns."""

    def ends(self) -> Sequence[int | None]:
        (found,) = query(self._session, f"SELECT MIN({self._column}), MAX({self._column}) {self._from}")
        return found

    def rows(self, after: int, up_to: int) -> int:
        """Estimate the rows by an index dive, and by the keys' density at the range's start: the server's
        statistics lag behind recent writes."""
        where = f"WHERE {self._column} > {after} AND {self._column} <= {up_to}"
        # A MySQL doesn't estimate the rows of an index that it is forced to use.
        explain = f"EXPLAIN FORMAT=TRADITIONAL SELECT 1 {self._table} USE INDEX (PRIMARY) {where}"
        estimated = int(query(self._session, explain)[0][self._estimate] or 0)
        step = f"SELECT {self._column} {self._from} {where} ORDER BY {self._column} LIMIT 1 OFFSET "
        first = query(self._session, f"{step}0")
        if not first:
            return 0
        other = query(self._session, f"{step}{_PROBE_ROWS}")
        if not other:
            (count,) = query(self._session, f"SELECT COUNT(*) {self._from} {where}")[0]
            return int(count)
        width = max(1, int(other[0][0] - first[0][0]))
        dense = _PROBE_ROWS * (up_to - int(first[0][0])) // width
        rows = max(estimated, dense)
        return min(rows, up_to - after) if self._is_unique else rows
