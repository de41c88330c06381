"""Rules applied to runs of changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ...errors import about
from ...events import Op, Row, RowChange, Run, Table
from .rule import Rule
from .where import Test

_MAX_STEPS: Final = 10_000
"""Maximum number of versions of tables, with operations, whose steps are remembered."""

_Steps = list[tuple[Rule, Test]]


class RunRules:
    """Rules that drop changes. Only conditions on rows decode them."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._steps: dict[tuple[int, Op, bool], tuple[Table, _Steps | None]] = {}

    def apply(self, runs: Sequence[Run], *, is_loaded: bool) -> list[Run]:
        """Return the changes that are left. Raises SinkError for a condition that the table can't have.

        Rules about changes don't concern rows of a snapshot.
        """
        left: list[Run] = []
        for run in runs:
            steps = self._of(run.table, run.op, is_loaded)
            if steps is None:
                continue
            parts = [run]
            for rule, test in steps:
                parts = [one for part in parts for one in _left(rule, test, part)]
            left += parts
        return left

    def _of(self, table: Table, op: Op, is_loaded: bool) -> _Steps | None:
        """Return the conditions for changes of the table's rows, with their tests, which are made once for
        each version of a table; None if all are dropped."""
        key = id(table), op, is_loaded
        step = self._steps.get(key)
        if step is None or step[0] is not table:
            if len(self._steps) >= _MAX_STEPS:
                self._steps.clear()
            step = self._steps[key] = table, self._made(table, op, is_loaded)
        return step[1]

    def _made(self, table: Table, op: Op, is_loaded: bool) -> _Steps | None:
        steps = []
        for rule in self._rules:
            if rule.concerns(table, op, is_loaded=is_loaded):
                if rule.condition is None:
                    return None
                with about(table.full_name):
                    steps.append((rule, rule.condition.test(table)))
        return steps


def _left(rule: Rule, test: Test, run: Run) -> list[Run]:
    changes, keeps = run.changes(), rule.keeps
    if rule.kinds:
        left = [change for change in changes if not _is_true(test, change)]
    elif run.op == "update":
        left = [part for change in changes if (part := _part(test, keeps, change)) is not None]
    else:  # half of the time that _part needs
        left = [
            change
            for change in changes
            if (row := change.after or change.before) is None or (test(row) is True) is keeps
        ]
    return [run] if left == changes else _runs(run, left)


def _is_true(test: Test, change: RowChange) -> bool:
    return all(row is None or test(row) for row in (change.before, change.after))


def _part(test: Test, keeps: bool, change: RowChange) -> RowChange | None:
    """Return a change's effect on the rows that the target has."""
    before, after = _kept(test, keeps, change.before), _kept(test, keeps, change.after)
    if before is change.before and after is change.after:
        return change
    if before is None and after is None:
        return None
    op: Op = "insert" if before is None else "delete"
    return replace(change, op=op, before=before, after=after)


def _kept(test: Test, keeps: bool, row: Row | None) -> Row | None:
    return None if row is None or (test(row) is True) is not keeps else row


def _runs(run: Run, changes: Sequence[RowChange]) -> list[Run]:
    """Return the changes as runs, each by one operation."""
    runs: list[Run] = []
    for change in changes:
        if runs and runs[-1].op == change.op:
            runs[-1].changes().append(change)
        else:
            runs.append(Run(run.commit_ts, run.start_ts, run.table, change.op, [change]))
    return runs
