"""Counts of a sink's rows by table, over all pipelines of a feed's process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ..chain import Stage
from ..chain.stage import Element, StageContext
from ..events import Op, RowChange, Rows, Run, Table, Transaction, Ts

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
        self._unended: list[Run] = []
        """Parts of a transaction whose end hasn't come yet."""

    def open(self, context: StageContext) -> None:  # noqa: ARG002
        self._before = self._counted
        self._unended = []
        self._by_id.clear()

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        """Count the rows of items, by run or one by one as they came: about 0.1 µs each."""
        part: RowChange | Run | None = None
        number = 0
        for item in batch:
            if not isinstance(item, Transaction):
                continue
            if item.chunk is not None:
                for run in item.runs:
                    self._tally(run.table).loaded += len(run)
            elif item.commit_ts <= self._before:
                continue
            elif not item.last:
                self._unended += item.runs
            else:
                self._counted = item.commit_ts
                if self._unended:
                    self._end()
                if type(rows := item.rows) is Rows:
                    runs = rows.runs
                    for run in runs:
                        if part is None or run.table is not part.table or run.op != part.op:
                            self._add(part, number)
                            part, number = run, 0
                        # The number of an item's rows is known by now, that of a run's is found again.
                        number += len(rows) if len(runs) == 1 else len(run)
                else:
                    for change in rows:
                        if part is None or change.table is not part.table or change.op != part.op:
                            self._add(part, number)
                            part, number = change, 0
                        number += 1
        self._add(part, number)
        return batch

    def _end(self) -> None:
        for run in self._unended:
            self._add(run, len(run))
        self._unended = []

    def _add(self, part: RowChange | Run | None, number: int) -> None:
        """Count a number of rows of the table and operation of this part."""
        if part is not None:
            self._tally(part.table).changes[part.op] += number

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
