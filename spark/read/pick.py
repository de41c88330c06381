"""Selection of rows by part and operation, with their numbers in the transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...events import Ddl, Item, Run, Transaction
from ..option_values import OPERATIONS
from .parts import WHOLE, Part


class Pick:
    """Selects rows of some tables and operations, numbered among all rows of their transaction.

    Used for one stream of items in commit order, since a transaction may be split into several items.
    """

    def __init__(self, part: Part = WHOLE, operations: Collection[str] = OPERATIONS) -> None:
        self._part = part
        self._operations = frozenset(operations)
        self._takes_all = part.is_whole and self._operations >= set(OPERATIONS)
        self._at = (0, 0)
        self._next = 0

    def begins(self, item: Item) -> bool:
        """True if the item is its transaction's first. Called once per item, before its rows are taken."""
        at = item.commit_ts, item.start_ts
        if at == self._at:
            return False
        self._at, self._next = at, 0
        return True

    def runs(self, item: Transaction) -> list[tuple[int, Run]]:
        """Return the selected runs, without decoding them, each with the number of its first row."""
        has, operations, picked = self._part.has, self._operations, []
        for run in item.runs:
            table = run.table
            if self._takes_all or (run.op in operations and has(table.schema, table.name)):
                picked.append((self._next, run))
            self._next += len(run)
        return picked

    def whole_runs(self, items: Sequence[Item]) -> tuple[list[int], list[Run]] | None:
        """Return the selected runs of whole transactions, each with the number of its first row, and begin
        these items; None, without doing so, if others are among them, as then each is to be taken alone.

        Transactions of one run are taken in a third of the time that `begins` and `runs` need.
        """
        at = self._at
        if not self._takes_all:
            return None
        numbers: list[int] = []
        runs: list[Run] = []
        for item in items:
            if type(item) is not Transaction or not item.last:
                return None
            before, at = at, (item.commit_ts, item.start_ts)
            if at == before:
                return None
            its = item.runs
            if len(its) == 1:
                numbers.append(0)
                runs.append(its[0])
                continue
            number = 0
            for run in its:
                numbers.append(number)
                runs.append(run)
                number += len(run)
        if items:
            self._at, self._next = at, 0 if len(its) == 0 else numbers[-1] + len(runs[-1])
        return numbers, runs

    def ddl(self, item: Ddl) -> int | None:
        """Return the number of the schema change; None if it isn't selected."""
        number = self._next
        self._next += 1
        is_wanted = "ddl" in self._operations and self._part.has_ddl
        return number if is_wanted and self._part.has(item.schema, item.table) else None
