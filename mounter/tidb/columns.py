"""Differences between two versions of a table: added and dropped columns, or why it can't be followed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from ...codec.tidb.action import Action as JobType
from ...codec.tidb.job import Job
from ...codec.tidb.table_info import PUBLIC, ColumnInfo, TableInfo
from ...events import Action, AddColumn, Column, DropColumn, Table, physical_ms

_TIMESTAMP: Final = 7
_DATETIME: Final = 12
"""MySQL's numbers of the types."""

_NOW: Final = re.compile(r"(?:current_timestamp|now|localtimestamp|localtime)(?:\(\d*\))?", re.IGNORECASE)


OTHER_KEY: Final = "the primary key is another"


class NotFollowed(Exception):
    """A job makes a change that sinks can't apply; the text names it."""


def column_actions(
    job: Job, old: TableInfo, before: Table, new: TableInfo, after: Table
) -> tuple[Action, ...]:
    """Return the actions that lead from `before` to `after`; none if rows look the same in both.

    Columns are identified by name. Raises NotFollowed if a remaining column is redefined, renamed or moved,
    or the primary key changes.
    """
    had = {column.name: column for column in before.columns}
    has = {column.name: column for column in after.columns}
    dropped = _dropped(job, old, new)
    added = [name for name in has if name not in had]
    _check_renames(job, dropped, _ids(old), added, _ids(new))
    for name, column in had.items():
        if name in has and not _takes_rows_of(column, has[name]):
            raise NotFollowed(f"column {name} is defined differently")
    if [name for name in had if name in has] != [name for name in has if name in had]:
        raise NotFollowed("columns change places")
    if _key_names(before) != _key_names(after):
        raise NotFollowed(OTHER_KEY)
    return (*map(DropColumn, dropped), *_additions(after, set(added)))


def _dropped(job: Job, old: TableInfo, new: TableInfo) -> list[str]:
    """Return the columns missing from the new info; a column being dropped is there, but not public."""
    left = {column.name for column in new.columns}
    named = _named_to_drop(job)
    return [
        column.name
        for column in old.columns
        if column.name not in left
        and (column.state == PUBLIC or column.name in named)
        and not column.hidden
        and (column.stored or not column.generated)
    ]


def _named_to_drop(job: Job) -> set[str]:
    """Return the names of columns that a job's clauses drop."""
    dropping = [job.args(of=part) for part in job.sub_jobs() if part.type == JobType.DROP_COLUMN]
    if job.type == JobType.DROP_COLUMN:
        dropping.append(job.args())
    return {name for args in dropping if (name := _first_name(args))}


def _first_name(args: Any) -> str:
    """Return the name of the column in these arguments; empty if there is none.

    It is the first of a list, or, from version 2, that of `column_info`.
    """
    match args:
        case [{"O": str(name)}, *_] | {"column_info": {"name": {"O": str(name)}}}:
            return name
    return ""


def _ids(info: TableInfo) -> dict[str, int]:
    return {column.name: column.id for column in info.columns}


def _check_renames(
    job: Job, dropped: list[str], old_ids: dict[str, int], added: list[str], new_ids: dict[str, int]
) -> None:
    """Raise NotFollowed for a renamed column: it keeps its id, except with rows rewritten for a new type."""
    gone = {old_ids.get(name): name for name in dropped}
    modifies = JobType.MODIFY_COLUMN in (job.type, *(part.type for part in job.sub_jobs()))
    for name in added:
        if new_ids.get(name) in gone or (gone and modifies):
            raise NotFollowed(f"column {gone.get(new_ids.get(name)) or dropped[0]} is renamed")


def _takes_rows_of(old: Column, new: Column) -> bool:
    """Return True if both columns have the same set of values; only NULL may become forbidden."""
    if new.nullable and not old.nullable:
        return False
    return _shape(old) == _shape(new)


def _shape(column: Column) -> tuple[Any, ...]:
    return (
        column.kind, column.unsigned, column.length, column.scale, column.members, column.charset
    )  # fmt: skip


def _key_names(table: Table) -> list[str]:
    return [table.columns[index].name for index in table.key]


def _additions(table: Table, added: set[str]) -> Iterator[AddColumn]:
    """Yield additions in the table's order, so that the column that each follows exists."""
    names = [column.name for column in table.columns]
    for number, column in enumerate(table.columns):
        if column.name in added:
            at_end = added.issuperset(names[number:])
            yield AddColumn(column, None if at_end else names[number - 1] if number else "")


def session_clock(job: Job, info: TableInfo, added: Iterable[str]) -> tuple[float, int]:
    """Return a job's creation time in Unix seconds, and its session's UTC offset in seconds.

    By that clock, DEFAULT CURRENT_TIMESTAMP of the columns `added` yields the value that TiDB gave to
    existing rows. The info has it as a constant: of a TIMESTAMP in UTC, of a DATETIME in the session's time
    zone. Raises NotFollowed for a default that only TiDB can compute.
    """
    names = frozenset(added)
    utc: list[float] = []
    local: list[float] = []
    for column in info.columns:
        if column.name in names and isinstance(column.default, str) and column.state == PUBLIC:
            if column.type in (_TIMESTAMP, _DATETIME) and _NOW.fullmatch(column.default):
                (utc if column.type == _TIMESTAMP else local).append(_seconds(column))
            elif column.default_is_expression:
                raise NotFollowed(f"column {column.name} has DEFAULT {column.default}")
    seconds = max(utc, default=physical_ms(job.start_ts) / 1000)
    if not local:
        return seconds, 0
    offset = round((max(local) - seconds) / 60) * 60
    return max([*utc, max(local) - offset]), offset


def _seconds(column: ColumnInfo) -> float:
    """Return the constant as Unix seconds, taking it as UTC."""
    try:
        return datetime.fromisoformat(str(column.origin_default)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise NotFollowed(f"column {column.name} has {column.origin_default!r} as a moment") from None
