"""Counts of a sink's rows by table, over all pipelines of a feed's process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ..chain import Stage
from ..chain.stage import Element, StageContext
from ..codec.item_passes import counted, whole
from ..events import Op, Table, Transaction, Ts

_MAX_TALLIES: Final = 200_000
"""Maximum number of versions of tables whose tallies are found by identity."""


class Tally:
    """Counts of one table."""

    __slots__ = ("changes", "loaded")

    def __init__(self) -> None:
        self.changes: dict[Op, int] = {"insert": 0, "update": 0, "delete": 0}
        self.loaded = 0


class TableCounts(Stage):
    """Counts what passes the resume filter: changes of rows that a load is still to read don't, and neither
    do changes that the sink has. What comes again after a restart of the pipeline is counted once.

    Any thread may read the tallies.
    """

    name = "table counts"

    def __init__(self, learn: Callable[[str], object]) -> None:
        """`learn` is called with the origin name of each table that has rows."""
        self.tallies: dict[str, Tally] = {}
        """By origin name."""
        self.wants: Callable[[str], bool] = lambda _: True
        """True for the origin name of a table that the sink is given."""
        self._learn = learn
        self._by_id: dict[int, tuple[Table, Tally]] = {}
        self._counted: Ts = 0
        """Ts of the last transaction that was counted."""
        self._before: Ts = 0
        """Ts up to which they were counted before the stage was opened."""
        self._unended: list[Transaction] = []
        """Parts of a transaction whose end hasn't come yet."""

    def open(self, context: StageContext) -> None:  # noqa: ARG002
        self._before = self._counted
        self._unended = []
        self._by_id.clear()

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        """Count the rows of items."""
        first = whole(batch, self._before + 1)
        if first.number and first.number == len(batch) and not self._unended:  # as nearly always
            self._count(batch)
            self._counted = first.ts
            return batch
        for item in batch:
            if not isinstance(item, Transaction):
                continue
            if item.chunk is not None:
                for table, _, number in counted([item]):
                    self._tally(table).loaded += number
            elif item.commit_ts > self._before:
                self._unended.append(item)
                if item.last:
                    self._counted = item.commit_ts
                    self._count(self._unended)
                    self._unended = []
        return batch

    def _count(self, transactions: Sequence[Element]) -> None:
        for table, op, number in counted(transactions):
            self._tally(table).changes[op] += number

    def _tally(self, table: Table) -> Tally:
        entry = self._by_id.get(id(table))
        if entry is None or entry[0] is not table:
            if len(self._by_id) >= _MAX_TALLIES:
                self._by_id.clear()
            name = table.origin_name
            tally = self.tallies.get(name, Tally())
            if name not in self.tallies and self.wants(name):
                self.tallies[name] = tally
                self._learn(name)
            entry = self._by_id[id(table)] = table, tally
        return entry[1]
