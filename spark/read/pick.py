"""The rows of transactions, numbered, and of them those that are wanted."""

from __future__ import annotations

from collections.abc import Collection

from ...events import Ddl, Item, RowChange, Run, Transaction
from ..option_values import OPERATIONS
from .parts import WHOLE, Part


class Pick:
    """Rows of some tables and operations, with the numbers that they have among all of their transaction.

    For one stream of items in commit order, as a transaction may come in pieces.
    """

    def __init__(self, part: Part = WHOLE, operations: Collection[str] = OPERATIONS) -> None:
        self._part = part
        self._operations = frozenset(operations)
        self._takes_all = part.is_whole and self._operations >= set(OPERATIONS)
        self._at = (0, 0)
        self._next = 0

    def begins(self, item: Item) -> bool:
        """Whether it is the first of its transaction. Once for each item, before its rows are taken."""
        at = item.commit_ts, item.start_ts
        if at == self._at:
            return False
        self._at, self._next = at, 0
        return True

    def rows(self, item: Transaction) -> list[tuple[int, RowChange]]:
        first = self._next
        self._next += len(item.rows)
        numbered = enumerate(item.rows, first)
        if self._takes_all:
            return list(numbered)
        has, operations = self._part.has, self._operations
        return [
            (number, row)
            for number, row in numbered
            if row.op in operations and has(row.table.schema, row.table.name)
        ]

    def runs(self, item: Transaction) -> list[tuple[int, Run]]:
        """As `rows`, in runs, which are not decoded: the number of each run's first row."""
        has, operations, picked = self._part.has, self._operations, []
        for run in item.runs:
            table = run.table
            if self._takes_all or (run.op in operations and has(table.schema, table.name)):
                picked.append((self._next, run))
            self._next += len(run)
        return picked

    def ddl(self, item: Ddl) -> int | None:
        """Its number; None if it isn't wanted."""
        number = self._next
        self._next += 1
        is_wanted = "ddl" in self._operations and self._part.has_ddl
        return number if is_wanted and self._part.has(item.schema, item.table) else None
