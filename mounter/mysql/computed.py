"""Statements about tables with generated columns, whose values the server computes without logging them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from ...codec.mysql.entry import Query
from ...codec.mysql.tokens import NotUnderstood
from ...events import Action, AddColumn, ChangeColumn, Column, DropColumn, Table, computed_columns

_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


def check_computed(table: Table, actions: Sequence[Action], query: Query) -> None:
    """Raise NotUnderstood if the values of generated columns change, or those of added ones can't be computed
    from the other columns as they are."""
    added = computed_columns(actions)
    if added and len([action for action in actions if isinstance(action, AddColumn)]) < len(actions):
        raise NotUnderstood("a generated column together with other changes")
    if added and query.converts_strings:
        raise NotUnderstood("a generated column while character_set_connection isn't character_set_client")
    if not any(column.generated for column in table.columns):
        return
    dropped = {action.name.lower() for action in actions if isinstance(action, DropColumn)}
    for action in actions:
        match action:
            case ChangeColumn(name, column, before) if before is None or not _is_alike(before, column):
                raise NotUnderstood(f"column {name}, of which generated ones may be computed")
            case AddColumn(column) if column.name.lower() in dropped:
                raise NotUnderstood(f"a new column {column.name} in a table with generated ones")


def _is_alike(before: Column, after: Column) -> bool:
    """Return True if expressions have the same value for every value of the column before and after."""
    if after.nullable is False and before.nullable:
        return False
    wider = before.kind == after.kind in ("varchar", "varbinary") and before.length <= after.length
    if before.kind in _BITS and after.kind in _BITS and not (before.unsigned or after.unsigned):
        wider = _BITS[before.kind] <= _BITS[after.kind]
    kind, length = (before.kind, before.length) if wider else (after.kind, after.length)
    unchanged: dict[str, Any] = {"name": before.name, "nullable": before.nullable, "default": before.default}
    if not (before.zerofill or after.zerofill):  # else it is a part of the text
        unchanged["width"] = before.width
    return before == replace(after, kind=kind, length=length, on_update=before.on_update, **unchanged)
