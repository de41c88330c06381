"""Effects of ALTER TABLE on a table whose definition isn't known."""

from __future__ import annotations

from collections.abc import Sequence

from ...codec.mysql.alter import (
    Add,
    AddKey,
    AddUnique,
    Change,
    ChangeIndex,
    ChangeRows,
    Clause,
    Convert,
    Drop,
    DropKey,
    Rename,
    RenameTo,
    SetCharset,
    SetDefault,
)
from ...codec.mysql.entry import Query
from ...codec.mysql.tokens import NotUnderstood
from ...events import Action, AddColumn, DropColumn
from .defaults import check_added, check_explicit


def alter_unknown(clauses: Sequence[Clause], query: Query) -> tuple[Action, ...]:
    """Return the effects on a table whose definition isn't known. Raises NotUnderstood for clauses other than
    ADD and DROP of plain columns."""
    actions: list[Action] = []
    for clause in clauses:
        match clause:
            case Add(definition, after, unless_exists) if not definition.primary:
                if definition.auto_increment:
                    raise NotUnderstood("AUTO_INCREMENT")
                check_explicit(definition)
                if definition.expression:
                    raise NotUnderstood("a generated column")
                column = definition.column()
                check_added(column, query)
                actions.append(AddColumn(column, after, unless_exists))
            case Drop(name, if_exists):
                actions.append(DropColumn(name, if_exists))
            case RenameTo() | AddUnique() | SetCharset():
                pass
            case _:
                raise NotUnderstood(f"{_spelled(clause)}: the table's definition isn't known")
    return tuple(actions)


def _spelled(clause: Clause) -> str:
    words = {
        Add: "ADD COLUMN",
        Change: "CHANGE COLUMN",
        Rename: "RENAME COLUMN",
        SetDefault: "ALTER COLUMN",
        AddKey: "ADD PRIMARY KEY",
        DropKey: "DROP PRIMARY KEY",
        ChangeIndex: "DROP INDEX",
        Convert: "CONVERT TO CHARACTER SET",
    }
    return clause.what if isinstance(clause, ChangeRows) else words[type(clause)]
