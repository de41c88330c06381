"""A schema change of one shard, in a form in which those of several shards can be compared."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    TablePosition,
    TruncateTable,
)
from .shard import Shard


class ShardStatement(Struct, frozen=True):
    """A schema change as one shard made it."""

    shard: Shard
    ddl: Ddl
    form: str
    """Its effect, whatever the spelling of the statement; equal effects have equal forms."""
    after: TablePosition
    """Position after the statement."""

    @property
    def place(self) -> str:
        """Source and position, the same whenever the statement is read."""
        return f"{self.shard.source}:{self.ddl.logged_at or self.after.ts}"


def is_alteration(ddl: Ddl) -> bool:
    """Return True for a change of a table's columns or key, which shards make one by one."""
    other = (CreateTable, DropTable, TruncateTable, RenameTables)
    return bool(ddl.actions) and not ddl.refusal and not isinstance(ddl.actions[0], other)


def form_of(ddl: Ddl) -> str:
    """Return the effect of a schema change on columns and key as text.

    The definition that a column had before is left out: it follows from the changes before this one.
    """
    return json.dumps([_form(action) for action in ddl.actions], sort_keys=True)


def _form(action: Action) -> list[object]:
    match action:
        case ChangeColumn():
            action = replace(action, before=None, name=action.name.lower(), column=_folded(action.column))
        case AddColumn():
            action = replace(action, column=_folded(action.column))
        case DropColumn():
            action = replace(action, name=action.name.lower())
        case ChangeDetails(before, after):
            return ["ChangeDetails", *msgspec.to_builtins([before, after])]
    return [type(action).__name__, msgspec.to_builtins(action)]


def _folded(column: Any) -> Any:
    return replace(column, name=column.name.lower())
