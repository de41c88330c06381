"""Kinds of events that rules are about."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from ...events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    ChangeKey,
    CreateTable,
    DropColumn,
    DropTable,
    Op,
    RenameTables,
    TruncateTable,
)

DdlKind: TypeAlias = Literal[
    "create table", "drop table", "truncate", "rename table", "add column", "drop column", "change column",
    "change key", "definition", "partition", "other",
]  # fmt: skip
"""Kinds of schema changes. Changes of indexes, checks and options are "definition", for sinks that copy them.
Changes of partitions' rows are "partition"; statements whose effect isn't known exactly are "other"."""
DDL_KINDS: Final[tuple[DdlKind, ...]] = get_args(DdlKind)
OPS: Final[tuple[Op, ...]] = get_args(Op)
"""Kinds of changes of rows."""
KINDS: Final = (*OPS, *DDL_KINDS)
_OF_ACTIONS: Final[dict[type[Action], DdlKind]] = {
    CreateTable: "create table",
    DropTable: "drop table",
    TruncateTable: "truncate",
    RenameTables: "rename table",
    AddColumn: "add column",
    DropColumn: "drop column",
    ChangeColumn: "change column",
    ChangeKey: "change key",
}


def kind_of(action: Action) -> str:
    """Return one of DDL_KINDS; empty for details that come with other actions and change nothing, which no
    rule is about."""
    if isinstance(action, ChangeDetails):
        return "" if action.before == action.after else "definition"
    return _OF_ACTIONS[type(action)]
