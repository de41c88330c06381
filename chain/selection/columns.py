"""Effects of schema changes on the values by which rows are chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from ...events import Action, AddColumn, ChangeColumn, Column, DropColumn

_INTEGERS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint")


def lost_columns(actions: Iterable[Action]) -> list[str]:
    """Return the names, in lower case, that no column has after the changes."""
    lost: dict[str, None] = {}
    for action in actions:
        if isinstance(action, DropColumn):
            lost[action.name.lower()] = None
        elif isinstance(action, ChangeColumn):
            lost[action.name.lower()] = None
            lost.pop(action.column.name.lower(), None)
        elif isinstance(action, AddColumn):
            lost.pop(action.column.name.lower(), None)
    return list(lost)


def changed_columns(actions: Iterable[Action]) -> list[str]:
    """Return the names, in lower case, of columns whose values in existing rows may be other ones now."""
    names = []
    for action in actions:
        match action:
            case AddColumn(column):
                names.append(column.name.lower())
            case ChangeColumn(_, column) if not _keeps_values(action):
                names.append(column.name.lower())
    return names


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
