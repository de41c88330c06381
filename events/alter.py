"""The definition of a table after a schema change."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from .ddl import Action, AddColumn, ChangeColumn, ChangeKey, DropColumn
from .table import Column, Table


def altered(table: Table, actions: Sequence[Action]) -> Table:
    """Return the table after changes of columns and of the key, which name existing columns."""
    columns = list(table.columns)
    had = {column.name.lower() for column in columns}
    key = [columns[index].name for index in table.key]
    for action in actions:
        match action:
            case AddColumn(column, after, unless_exists):
                if not (unless_exists and column.name.lower() in had):
                    columns.insert(_place(columns, after, len(columns)), column)
            case DropColumn(name, if_exists):
                if not (if_exists and name.lower() not in had):
                    del columns[_index(columns, name)]
                    key = [one for one in key if one.lower() != name.lower()]
            case ChangeColumn(name, column, _, after, if_exists):
                if not (if_exists and name.lower() not in had):
                    index = _index(columns, name)
                    del columns[index]
                    columns.insert(_place(columns, after, index), column)
                    key = [column.name if one.lower() == name.lower() else one for one in key]
            case ChangeKey(names):
                key = list(names)
    return replace(table, columns=tuple(columns), key=tuple(_index(columns, name) for name in key))


def _index(columns: Sequence[Column], name: str) -> int:
    low = name.lower()
    return next(index for index, column in enumerate(columns) if column.name.lower() == low)


def _place(columns: Sequence[Column], after: str | None, otherwise: int) -> int:
    if after is None:
        return otherwise
    return 0 if after == "" else _index(columns, after) + 1
