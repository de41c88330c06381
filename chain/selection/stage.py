"""The stage of filters of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from ...errors import SinkError
from ...events import (
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
from .. import Element, Keep, Mark, StageContext
from .row_filter import RowFilter, RowFilters
from .share import Share

WHERE_KEY: Final = "where"
"""Key in a checkpoint: the conditions of the feed's filters by which the target was loaded."""
ROWS_KEY: Final = "rows"
"""Key in a checkpoint: the conditions of the sink itself."""


_INTEGERS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint")
_BY: Final = {WHERE_KEY: "where of [[filter]]", ROWS_KEY: "urls, split_by and rows"}


def difference(filters: Sequence[RowFilter], sink: str, stages: Mapping[str, str], key: str) -> str:
    """Return how the conditions of a sink's filters differ from those in its checkpoint's `stages`, by which
    the target was loaded; empty if they don't."""
    state, had = _state(filters), stages.get(key, "")
    if state == had:
        return ""
    return (
        f"its rows were loaded by {_BY[key]} = {had or 'nothing'}, and now these are {state or 'nothing'}: "
        f"restore them, or give {_which(sink, key)} an empty target"
    )


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
        self._sink = ""

    def open(self, context: StageContext) -> None:
        """Raises SinkError if the target was loaded by other conditions."""
        at = context.checkpoint
        self._sink = context.sink
        is_new = not at.position
        if not is_new and (problem := difference(self._partial, self._sink, at.stages, self._key)):
            raise SinkError(f"sink {self._sink}: {problem}")
        state = _state(self._partial)
        self._keeps = [Keep(self._key, state)] if is_new and state else []

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
                    f"correct {_BY[self._key]}, and give {_which(self._sink, self._key)} an empty target"
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


def _state(filters: Iterable[RowFilter]) -> str:
    """Return the conditions about the rows themselves, as they are in a checkpoint."""
    found = [
        [*one.tables.patterns, one.where.text] for one in filters if one.is_partial and one.where is not None
    ]
    return json.dumps(sorted(found)) if found else ""


def _which(sink: str, key: str) -> str:
    return (
        "every sink of the feed" if key == WHERE_KEY else f"sink {sink}, and those that share rows with it,"
    )


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
    return not is_narrower and (_values(before) == _values(action.column) or _is_wider(before, action.column))


def _is_wider(before: Column, after: Column) -> bool:
    """Return True if the type is a larger VARCHAR, VARBINARY or integer, which has every value unchanged."""
    if before.kind in _INTEGERS and after.kind in _INTEGERS:
        fits = _INTEGERS.index(before.kind) <= _INTEGERS.index(after.kind)
    else:
        fits = before.kind == after.kind in ("varchar", "varbinary") and before.length <= after.length
    return fits and _values(replace(before, kind=after.kind, length=after.length)) == _values(after)


def _values(column: Column) -> Column:
    """Return what of a column decides about its values."""
    return replace(column, name="", default=None, on_update=None, nullable=True, width=0, zerofill=False)
