"""Counts of a sink's rows by table, over all pipelines of a feed's process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ..chain import Stage
from ..chain.stage import Barrier, Element, Keep, Lag, StageContext
from ..events import Ddl, Op, Rows, Run, Table, Ts

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
        """Ts up to which changes were counted."""
        self._unended: list[tuple[Tally, Op, int]] = []
        """Counts of a transaction whose end hasn't come yet."""

    def open(self, context: StageContext) -> None:  # noqa: ARG002
        self._unended = []
        self._by_id.clear()

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        """Count the rows of items, by run: about 0.5 µs each, and nothing for each row."""
        by_id, counted = self._by_id, self._counted
        for item in batch:
            if isinstance(item, (Ddl, Barrier, Lag, Keep)):
                continue
            ts = item.commit_ts
            is_load = item.chunk is not None
            if ts <= counted and not is_load:
                continue
            rows = item.rows
            runs = rows.runs if isinstance(rows, Rows) else item.runs
            for run in runs:
                table = run.table
                entry = by_id.get(id(table))
                if entry is None or entry[0] is not table:
                    entry = self._entry(run)
                tally = entry[1]
                # The number of an item's rows is known by now, that of a run's is found again.
                count = len(rows) if len(runs) == 1 else len(run)
                if is_load:
                    tally.loaded += count
                elif item.last:
                    tally.changes[run.op] += count
                else:
                    self._unended.append((tally, run.op, count))
            if item.last:
                if self._unended:
                    self._end()
                if not is_load:
                    self._counted = counted = ts
        return batch

    def _end(self) -> None:
        for tally, op, count in self._unended:
            tally.changes[op] += count
        self._unended = []

    def _entry(self, run: Run) -> tuple[Table, Tally]:
        if len(self._by_id) >= _MAX_TALLIES:
            self._by_id.clear()
        name = run.origin_name
        tally = self.tallies.get(name)
        if tally is None:
            tally = Tally()
            if self.wants(name):
                self.tallies[name] = tally
                self._learn(name)
        entry = self._by_id[id(run.table)] = run.table, tally
        return entry
