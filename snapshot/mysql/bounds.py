"""Bounds that divide a table by its key into chunks of about the same number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from ...codec.mysql.result_rows import SESSION
from ...codec.mysql.tokens import qualified, quoted
from ...dialects.mysql.client import Session, query, translated
from ...dialects.mysql.result import Result
from ...dialects.mysql.server import ServerOptions
from ...events import INTEGERS, KeyRange, OrderedKey, Table
from .estimate import expected_rows
from .keys import OrderedKeys

_PROBE_ROWS: Final = 1000
"""Number of keys stepped over to measure their density."""


class _Span(Struct, frozen=True):
    """Integers above `after` and up to `up_to`, with an estimate of their rows."""

    after: int
    up_to: int
    rows: int


def bounds(
    session: Session, options: ServerOptions, table: Table, chunk_rows: int, within: KeyRange
) -> list[OrderedKey]:
    """Return the bounds between the chunks of a range, in order. Each is the last key of a chunk, or the
    first parts of all of its last keys.

    A first column of integers is divided by estimates; a key of others by steps over the rows. The session is
    set up for reading rows; `options` name the server in errors. Raises Retryable and SourceError.
    """
    with translated(options):
        query(session, SESSION)
    keys = OrderedKeys(lambda table_of_keys, sql: Result(session, options, table_of_keys, sql), table)
    if table.columns[table.key[0]].kind not in INTEGERS:
        return list(_steps(keys, within, chunk_rows))
    with translated(options):
        spans = list(_spans_within(_FirstColumn(session, table), within, chunk_rows))
    bound_keys: list[OrderedKey] = []
    rows = 0
    for span in spans:
        if rows and rows + span.rows > chunk_rows:
            bound_keys.append((span.after,))
            rows = 0
        rows += span.rows
        if len(table.key) > 1 and span.rows > 2 * chunk_rows:  # many rows have this integer
            bound_keys += _steps(keys, KeyRange((span.after,), (span.up_to,)), chunk_rows)
            rows = chunk_rows
    return bound_keys


def _steps(keys: OrderedKeys, within: KeyRange, chunk_rows: int) -> Iterator[OrderedKey]:
    """Yield each n-th key of a range."""
    while (key := keys.nth(within, chunk_rows)) is not None:
        yield key
        within = KeyRange(key, within.up_to)


def _spans_within(keys: _FirstColumn, within: KeyRange, chunk_rows: int) -> Iterator[_Span]:
    low, high = keys.ends()
    if low is None or high is None:
        return
    low -= 1
    if within.after:
        low = max(low, int(within.after[0]))
    if within.up_to:
        high = min(high, int(within.up_to[0]))
    yield from _spans(keys, low, high, chunk_rows)


def _spans(keys: _FirstColumn, after: int, up_to: int, chunk_rows: int) -> Iterator[_Span]:
    """Halve the range until each part is small enough: keys may be unevenly dense."""
    rows = keys.rows(after, up_to)
    if rows <= chunk_rows or up_to - after <= 1:
        yield _Span(after, up_to, rows)
        return
    middle = (after + up_to) // 2
    yield from _spans(keys, after, middle, chunk_rows)
    yield from _spans(keys, middle, up_to, chunk_rows)


class _FirstColumn:
    """Queries about the first column of a table's key, of integers."""

    def __init__(self, session: Session, table: Table) -> None:
        self._session = session
        self._table = table
        self._column = quoted(table.columns[table.key[0]].name)
        self._from = f"FROM {qualified(table.schema, table.name)} FORCE INDEX (PRIMARY)"
        self._is_unique = len(table.key) == 1

    def ends(self) -> Sequence[int | None]:
        (row,) = query(self._session, f"SELECT MIN({self._column}), MAX({self._column}) {self._from}")
        return row

    def rows(self, after: int, up_to: int) -> int:
        """Estimate the rows by an index dive, and by the keys' density at the range's start: the server's
        statistics lag behind recent writes."""
        condition = f"{self._column} > {after} AND {self._column} <= {up_to}"
        step = f"SELECT {self._column} {self._from} WHERE {condition} ORDER BY {self._column} LIMIT 1 OFFSET "
        first = query(self._session, f"{step}0")
        if not first:
            return 0
        other = query(self._session, f"{step}{_PROBE_ROWS}")
        if not other:
            (count,) = query(self._session, f"SELECT COUNT(*) {self._from} WHERE {condition}")[0]
            return int(count)
        width = max(1, int(other[0][0] - first[0][0]))
        dense = _PROBE_ROWS * (up_to - int(first[0][0])) // width
        rows = max(expected_rows(self._session, self._table, condition), dense)
        return min(rows, up_to - after) if self._is_unique else rows
