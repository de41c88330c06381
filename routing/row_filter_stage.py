"""The stage of filters of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from ..chain import Element, Keep, Mark, StageContext
from ..errors import SinkError
from ..events import (
    Action,
    AddColumn,
    ChangeColumn,
    Checkpoint,
    Column,
    Ddl,
    DropColumn,
    RenameTables,
    Rows,
    TableName,
    Transaction,
    Wait,
)
from .row_filter import RowFilter, RowFilters
from .share import Share

WHERE_KEY: Final = "where"
"""Key in a checkpoint: the conditions of the feed's filters by which the target was loaded."""
ROWS_KEY: Final = "rows"
"""Key in a checkpoint: the conditions of the sink itself."""


_WHICH: Final = {WHERE_KEY: "every sink of the feed", ROWS_KEY: "it, and those that share rows with it,"}


class RowFilterStage:
    """Drops changes that a filter matches.

    Rows of a snapshot are no changes, and pass, unless the filter is about the rows themselves. The target is
    right only for the conditions that it was loaded by, so they are in its checkpoint. A schema change that
    gives existing rows other values in a condition's columns makes the table be loaded again.
    """

    name = "row filter"

    def __init__(self, filters: Sequence[RowFilter], key: str = WHERE_KEY) -> None:
        """`key` is that of the conditions in the checkpoint."""
        self._key = key
        self._partial = [one for one in filters if one.is_partial]
        self._filters = RowFilters(filters)
        self._keeps: list[Keep] = []

    def open(self, context: StageContext) -> None:
        """Raises SinkError if the target was loaded by other conditions."""
        at = context.checkpoint
        state, had = self._state(), at.stages.get(self._key, "")
        is_new = not at.position
        if not is_new and state != had:
            by = "filters with where" if self._key == WHERE_KEY else "the choice"
            raise SinkError(
                f"sink {context.sink}: its rows were loaded by {by} = {had or 'nothing'}, and now it is "
                f"{state or 'nothing'}: restore that, or give {_WHICH[self._key]} an empty target"
            )
        self._keeps = [Keep(self._key, state)] if is_new and state else []

    def _state(self) -> str:
        found = [[*one.tables.patterns, one.where.text] for one in self._partial if one.where is not None]
        return json.dumps(sorted(found)) if found else ""

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        """Raises SinkError for a condition that can't be evaluated, or that a schema change breaks."""
        marks, self._keeps = self._keeps, []
        return [*marks, *map(self._passed, batch)]

    def _passed(self, one: Element) -> Element:
        if isinstance(one, Mark):
            return one
        return self._changed(one) if isinstance(one, Ddl) else self._of_transaction(one)

    def _of_transaction(self, item: Transaction) -> Transaction:
        is_loaded = item.chunk is not None
        if is_loaded and not self._partial:
            return item
        runs = item.runs
        left = [part for run in runs for part in self._filters.apply(run, is_loaded=is_loaded)]
        return item if left == runs else replace(item, rows=Rows(left))

    def _changed(self, ddl: Ddl) -> Ddl:
        if ddl.refusal or not ddl.actions or not self._partial:
            return ddl
        if isinstance(ddl.actions[0], RenameTables):
            return self._renamed(ddl, ddl.actions[0])
        table = f"table {ddl.schema}.{ddl.table}"
        for one in self._partial:
            if one.where is None or not one.tables.matches(ddl.schema, ddl.table):
                continue
            if isinstance(one.where, Share) and one.where.is_by_key:
                if one.where.changes(ddl, _fresh(ddl.actions)):
                    return _loaded_again(ddl, f"{table}: the key by which its rows are divided was changed")
                continue
            columns = one.where.columns
            if gone := columns & set(_lost(ddl.actions)):
                raise SinkError(
                    f"{table}: {one.where.label} needs column {min(gone)}, which is gone after {ddl.query}: "
                    f"change it, and give {_WHICH[self._key]} an empty target"
                )
            if changed := columns & set(_fresh(ddl.actions)):
                return _loaded_again(ddl, f"{table}: column {min(changed)} of {one.where.label} was changed")
        return ddl

    def _renamed(self, ddl: Ddl, action: RenameTables) -> Ddl:
        if all(self._of(old) == self._of(new) for old, new in action.pairs):
            return ddl
        return replace(ddl, reload=f"other filters concern the tables by their new names: {ddl.query}")

    def _of(self, name: TableName) -> list[int]:
        """Return the numbers of the filters that concern a table's rows."""
        return [number for number, one in enumerate(self._partial) if one.tables.matches(*name)]

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:  # noqa: ARG002
        return ()

    def waits(self) -> Sequence[Wait]:
        return ()

    def close(self) -> None:
        """Do nothing: this stage holds no items."""


def _loaded_again(ddl: Ddl, why: str) -> Ddl:
    return replace(ddl, actions=(), reload=f"{why}: {ddl.query}")


def _lost(actions: Iterable[Action]) -> list[str]:
    """Return the names, in lower case, that no column has after the changes."""
    found: dict[str, None] = {}
    for action in actions:
        if isinstance(action, DropColumn):
            found[action.name.lower()] = None
        elif isinstance(action, ChangeColumn):
            found[action.name.lower()] = None
            found.pop(action.column.name.lower(), None)
        elif isinstance(action, AddColumn):
            found.pop(action.column.name.lower(), None)
    return list(found)


def _fresh(actions: Iterable[Action]) -> list[str]:
    """Return the names, in lower case, of columns whose values in existing rows may be other ones now."""
    found = []
    for action in actions:
        match action:
            case AddColumn(column):
                found.append(column.name.lower())
            case ChangeColumn(_, column) if not _keeps_values(action):
                found.append(column.name.lower())
    return found


def _keeps_values(action: ChangeColumn) -> bool:
    before = action.before
    if before is None or before.name.lower() != action.column.name.lower():
        return False
    is_narrower = before.nullable and not action.column.nullable
    return not is_narrower and _values(before) == _values(action.column)


def _values(column: Column) -> Column:
    """Return what of a column decides about its values."""
    return replace(column, name="", default=None, on_update=None, nullable=True)
