"""Filters of row changes by table, operation and condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...events import Op, Row, RowChange, Run, Table
from .condition import Condition
from .tables import TablePatterns
from .where import Test

_MAX_TESTS: Final = 10_000
"""Maximum number of tests of table versions that are remembered."""


class RowFilter(Struct, frozen=True):
    """Drops changes of rows of these tables.

    With `ops`, the changes by these operations; if there is a condition, those for whose rows, before and
    after, it is true. Without `ops`, the rows themselves: a target has none for which the condition is true.
    """

    tables: TablePatterns
    ops: frozenset[Op] = frozenset()
    where: Condition | None = None

    @property
    def is_partial(self) -> bool:
        """True if the target has a part of each table's rows."""
        return not self.ops

    def concerns(self, run: Run) -> bool:
        return (not self.ops or run.op in self.ops) and self.tables.matches(run.table.schema, run.table.name)


class RowFilters:
    """All filters of rows, applied to runs."""

    def __init__(self, filters: Sequence[RowFilter]) -> None:
        self._filters = tuple(filters)
        self._tests: dict[tuple[int, int], tuple[Table, Test]] = {}

    def apply(self, run: Run, *, is_loaded: bool) -> list[Run]:
        """Return the changes that are left. Raises SinkError for a condition that the table can't have.

        Rows of a snapshot are no changes: only filters of rows concern them.
        """
        runs = [run]
        for one in self._filters:
            if one.concerns(run) and not (is_loaded and one.ops):
                runs = [left for part in runs for left in self._after(one, part)]
        return runs

    def _after(self, one: RowFilter, run: Run) -> list[Run]:
        if one.where is None:
            return []
        test = self._test(one.where, run.table)
        changes = run.changes()
        if one.ops:
            left = [change for change in changes if not _is_true(test, change)]
        else:
            left = [found for change in changes if (found := _part(test, change)) is not None]
        if left == changes:
            return [run]
        return _runs(run, left)

    def _test(self, where: Condition, table: Table) -> Test:
        """Return the condition's test of the table's rows, made once for each version of a table."""
        key = id(where), id(table)
        found = self._tests.get(key)
        if found is None or found[0] is not table:
            if len(self._tests) >= _MAX_TESTS:
                self._tests.clear()
            found = self._tests[key] = table, where.test(table)
        return found[1]


def _is_true(test: Test, change: RowChange) -> bool:
    return all(row is None or test(row) for row in (change.before, change.after))


def _part(test: Test, change: RowChange) -> RowChange | None:
    """Return a change's effect on the rows for which the condition isn't true."""
    before, after = _kept(test, change.before), _kept(test, change.after)
    if before is change.before and after is change.after:
        return change
    if before is None and after is None:
        return None
    op: Op = "insert" if before is None else "delete"
    return replace(change, op=op, before=before, after=after)


def _kept(test: Test, row: Row | None) -> Row | None:
    return None if row is None or test(row) else row


def _runs(run: Run, changes: Sequence[RowChange]) -> list[Run]:
    """Return the changes as runs, each by one operation."""
    runs: list[Run] = []
    for change in changes:
        if runs and runs[-1].op == change.op:
            runs[-1].changes().append(change)
        else:
            runs.append(Run(run.commit_ts, run.start_ts, run.table, change.op, [change]))
    return runs
