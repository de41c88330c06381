"""Kinds of schema changes, as messages name them: Canal's names and TiDB's numbers."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from ...codec.tidb.action import Action as JobType
from ...events import (
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    ChangeKey,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    Table,
    TableName,
    TruncateTable,
)


class StatementKind(NamedTuple):
    name: str
    """CREATE, ALTER, ERASE, RENAME, TRUNCATE, CINDEX or DINDEX."""
    number: int
    """TiDB's number of the DDL action."""


_SEVERAL: Final = StatementKind("ALTER", JobType.MULTI_SCHEMA_CHANGE)


def statement_kind(ddl: Ddl) -> StatementKind:
    """Return the kind of the statement by its effects on the table."""
    actions = [action for action in ddl.actions if not _same_details(action)]
    match actions:
        case [CreateTable(), *_]:
            return StatementKind("CREATE", JobType.CREATE_TABLE)
        case [DropTable()]:
            return StatementKind("ERASE", JobType.DROP_TABLE)
        case [TruncateTable()]:
            return StatementKind("TRUNCATE", JobType.TRUNCATE_TABLE)
        case [RenameTables(pairs)]:
            return StatementKind("RENAME", JobType.RENAME_TABLES if len(pairs) > 1 else JobType.RENAME_TABLE)
        case [AddColumn()]:
            return StatementKind("ALTER", JobType.ADD_COLUMN)
        case [DropColumn()]:
            return StatementKind("ALTER", JobType.DROP_COLUMN)
        case [ChangeColumn() as change]:
            return StatementKind("ALTER", _column_change(change))
        case [ChangeKey(columns)]:
            return StatementKind("ALTER", JobType.ADD_PRIMARY_KEY if columns else JobType.DROP_PRIMARY_KEY)
        case [ChangeDetails() as change]:
            return _details_change(change)
    return _SEVERAL


def _column_change(change: ChangeColumn) -> int:
    """Return the number of a default that is set or dropped, or of any other change."""
    old, new = change.before, change.column
    if old is not None and old.default != new.default and replace(old, default=new.default) == new:
        return JobType.SET_DEFAULT_VALUE
    return JobType.MODIFY_COLUMN


def _same_details(action: object) -> bool:
    return isinstance(action, ChangeDetails) and action.before == action.after


def _details_change(change: ChangeDetails) -> StatementKind:
    before, after = set(change.before.indexes), set(change.after.indexes)
    if after > before:
        return StatementKind("CINDEX", JobType.ADD_INDEX)
    if after < before:
        return StatementKind("DINDEX", JobType.DROP_INDEX)
    if change.before.comment != change.after.comment:
        return StatementKind("ALTER", JobType.MODIFY_TABLE_COMMENT)
    return _SEVERAL


def named(ddl: Ddl) -> TableName:
    """Return the name of the statement's table after it; of a RENAME, that of its first table."""
    match ddl.actions:
        case [RenameTables(pairs)]:
            return pairs[0][1]
    return ddl.schema, ddl.table


def table_after(ddl: Ddl) -> Table | None:
    """Return the table after a statement, if the statement says what it is."""
    match ddl.actions:
        case [CreateTable(table), *_]:
            return table
        case [*_, ChangeDetails(table=table)] if table.columns:
            return table
    return None
