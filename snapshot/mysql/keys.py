"""The keys of a table as one session sees them: their ends, each n-th of them, or all in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from ...codec.mysql.result_rows import ResultRowsDecoder
from ...dialects.mysql.key_range import chunk_query, conditions, order_by, select, where_clause
from ...dialects.mysql.result import Result
from ...events import KeyRange, OrderedKey, Table, key_order, key_table

CHUNK_KEYS: Final = 20_000
"""Maximum number of keys that are in memory."""

Run: TypeAlias = Callable[[Table, str], Result]
"""Runs a query of all columns of a table."""


class OrderedKeys:
    """The keys of a table that has an order of them, in Python and on the server. Raises Retryable and
    SourceError."""

    def __init__(self, run: Run, table: Table) -> None:
        self.table: Final = key_table(table)
        """The table without its other columns."""
        order = key_order(self.table)
        assert order is not None
        self._order = order
        self._run = run

    def ends(self) -> tuple[OrderedKey, OrderedKey] | None:
        """Return the lowest and highest key; None for an empty table."""
        lowest = self._read(chunk_query(self.table, KeyRange(), 1))
        if not lowest:
            return None
        return lowest[0], self._read(f"{self._all()}{order_by(self.table, ' DESC')} LIMIT 1")[0]

    def nth(self, within: KeyRange, number: int) -> OrderedKey | None:
        """Return the n-th key of a range, counted from 1; None if there are fewer."""
        where = where_clause(conditions(self.table, within))
        rows = self._read(f"{self._all()}{where}{order_by(self.table)} LIMIT 1 OFFSET {number - 1}")
        return rows[0] if rows else None

    def all(self) -> Iterator[OrderedKey]:
        within = KeyRange()
        while chunk := self._read(chunk_query(self.table, within, CHUNK_KEYS)):
            yield from chunk
            within = KeyRange(chunk[-1])

    def _all(self) -> str:
        return f"{select(self.table)} FORCE INDEX (PRIMARY)"

    def _read(self, query: str) -> list[OrderedKey]:
        order, packets = self._order, []
        result = self._run(self.table, query)
        while not result.done:
            packets.append(result.read())
        changes = ResultRowsDecoder(self.table).decode(b"".join(packets), 0, 0)
        return [order(change.after) for change in changes if change.after is not None]
