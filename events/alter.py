"""The definition of a table after a schema change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from .ddl import Action, AddColumn, ChangeColumn, ChangeKey, DropColumn
from .table import Column, Table


@dataclass(slots=True, eq=False)
class _Altered:
    """A column, and its name before the statement in lower case; empty for a new one."""

    before: str
    column: Column

    @property
    def now(self) -> str:
        return self.column.name.lower()


def altered(table: Table, actions: Sequence[Action]) -> Table:
    """Return the table after the changes of one statement.

    Columns that are changed or dropped have the names from before it; those of a place or a key, the names
    after it. Raises StopIteration for a column that isn't there.
    """
    columns = [_Altered(column.name.lower(), column) for column in table.columns]
    had = {each.before for each in columns}
    key: list[_Altered] = [columns[index] for index in table.key]
    names: Sequence[str] | None = None
    for action in actions:
        match action:
            case AddColumn(column, after, unless_exists):
                if not (unless_exists and column.name.lower() in had):
                    columns.insert(_place(columns, after, len(columns)), _Altered("", column))
            case DropColumn(name, if_exists):
                if not (if_exists and name.lower() not in had):
                    dropped = columns.pop(_changed(columns, name))
                    key = [each for each in key if each is not dropped]
            case ChangeColumn(name, column, _, after, if_exists):
                if not (if_exists and name.lower() not in had):
                    index = _changed(columns, name)
                    changed = columns.pop(index)
                    changed.column = column
                    columns.insert(_place(columns, after, index), changed)
            case ChangeKey(names):
                pass
    if names is not None:
        key = [columns[_named(columns, name)] for name in names]
    places = [columns.index(each) for each in key]
    return replace(table, columns=tuple(each.column for each in columns), key=tuple(places))


def _changed(columns: Sequence[_Altered], name: str) -> int:
    """Return the index of a column by its name before the statement; of a new one by its own."""
    low = name.lower()
    for index, each in enumerate(columns):
        if each.before == low:
            return index
    return next(index for index, each in enumerate(columns) if not each.before and each.now == low)


def _named(columns: Sequence[_Altered], name: str) -> int:
    """Return the index of a column by its name after the statement, or else by that before it."""
    low = name.lower()
    for index, each in enumerate(columns):
        if each.now == low:
            return index
    return next(index for index, each in enumerate(columns) if each.before == low)


def _place(columns: Sequence[_Altered], after: str | None, otherwise: int) -> int:
    if after is None:
        return otherwise
    return 0 if after == "" else _named(columns, after) + 1
