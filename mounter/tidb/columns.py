"""Changes of columns and of the primary key that lead from one version of a table to the next."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...codec.tidb.action import Action as JobType
from ...codec.tidb.job import Job
from ...codec.tidb.table_info import PUBLIC, TableInfo
from ...events import Action, AddColumn, ChangeColumn, ChangeKey, DropColumn, Table, altered


class NotFollowed(Exception):
    """A job makes a change that sinks can't apply; the text names it."""


class _Columns(Struct, frozen=True):
    """Where the columns of the next version come from."""

    kept: dict[str, str]
    """Names before the job by those after it."""
    dropped: tuple[str, ...]
    leaving: frozenset[str]
    """Columns that rows no longer have, and whose drop is the effect of a later job or part of this one."""


def column_actions(
    job: Job, old: TableInfo, before: Table, new: TableInfo, after: Table, *, of_pumps: bool = False
) -> tuple[Action, ...]:
    """Return the actions that lead from `before` to `after`; none if nothing differs.

    With `of_pumps`, parts of a job that take effect before it is done aren't known. Raises NotFollowed if the
    actions aren't known exactly.
    """
    if JobType.DROP_PRIMARY_KEY in _clauses(job) and (of_pumps or job.type != JobType.DROP_PRIMARY_KEY):
        raise NotFollowed("DROP PRIMARY KEY: rows are no longer unique before it is done")
    columns = _matched(job, old, before, new, after)
    actions: list[Action] = [DropColumn(name) for name in columns.dropped]
    actions += _changes(before, after, columns.kept)
    start = _without(before, columns.leaving)
    known = {column.name for column in start.columns}
    changed = _applied(
        start, [one for one in actions if not isinstance(one, DropColumn) or one.name in known]
    )
    if _key_names(changed) != _key_names(after):
        actions.append(ChangeKey(tuple(_key_names(after))))
    if changed.columns != after.columns:
        raise NotFollowed("its columns change in more than one way")
    return tuple(actions)


def check_not_rewritten(actions: Sequence[Action], old: TableInfo, new: TableInfo) -> None:
    """Raise NotFollowed for a column whose rows were rewritten."""
    old_ids = {column.name: column.id for column in old.columns}
    new_ids = {column.name: column.id for column in new.columns}
    for action in actions:
        if isinstance(action, ChangeColumn) and old_ids[action.name] != new_ids[action.column.name]:
            raise NotFollowed(
                f"column {action.name} is converted beside other changes: rows have its new values before the"
                " binlog of the job"
            )


# --- the columns before and after ------------------------------------------------------------------


def _matched(job: Job, old: TableInfo, before: Table, new: TableInfo, after: Table) -> _Columns:
    """Match columns by their ids. A column whose rows are rewritten, for another type, gets a new id.

    Raises NotFollowed if a rewritten column can't be told from one that is dropped.
    """
    old_ids, new_ids = _ids(old, before), _ids(new, after)
    names = {id_: name for name, id_ in old_ids.items()}
    kept = {name: names[id_] for name, id_ in new_ids.items() if id_ in names}
    in_new = {column.name for column in new.columns if column.state != PUBLIC}
    leaving = old_ids.keys() - set(kept.values()) & in_new
    gone = [name for name in old_ids if name not in kept.values() and name not in in_new]
    come = [name for name in new_ids if name not in kept]
    if JobType.MODIFY_COLUMN in _clauses(job):
        kept |= _rewritten(job, gone, come)
        gone = [name for name in gone if name not in kept.values()]
    dropped = [column.name for column in old.columns if column.name in {*gone, *_ended(job, old, new)}]
    return _Columns(kept, tuple(dropped), frozenset(leaving))


def _rewritten(job: Job, gone: Sequence[str], come: Sequence[str]) -> dict[str, str]:
    """Return the old names by the new ones of columns that have a new id although none of them was dropped.

    Raises NotFollowed if two of them were renamed too.
    """
    dropped, added = _named(job, JobType.DROP_COLUMN), _named(job, JobType.ADD_COLUMN)
    kept = {name: name for name in come if name in gone}
    gone = [name for name in gone if name not in kept and name not in dropped]
    come = [name for name in come if name not in kept and name not in added]
    if gone and come:
        if len(gone) > 1 or len(come) > 1:
            raise NotFollowed(f"column {gone[0]} is renamed and converted, and other columns are too")
        kept[come[0]] = gone[0]
    return kept


def _ids(info: TableInfo, table: Table) -> dict[str, int]:
    """Return the ids of a table's columns by name, in order."""
    ids = {column.name: column.id for column in info.columns if column.state == PUBLIC}
    return {column.name: ids[column.name] for column in table.columns}


def _ended(job: Job, old: TableInfo, new: TableInfo) -> Iterator[str]:
    """Yield columns that were being dropped before, and aren't there after the job."""
    left = {column.name for column in new.columns}
    named = _named(job, JobType.DROP_COLUMN)
    for column in old.columns:
        is_gone = column.state != PUBLIC and column.name in named and column.name not in left
        if is_gone and not column.hidden and (column.stored or not column.generated):
            yield column.name


def _named(job: Job, type_: int) -> set[str]:
    """Return the names of columns in a job's clauses that add or drop one."""
    clauses = [job.args(of=part) for part in job.sub_jobs() if part.type == type_]
    if job.type == type_:
        clauses.append(job.args())
    return {name for args in clauses if (name := _first_name(args))}


def _first_name(args: Any) -> str:
    """Return the name of the column in the arguments of a clause; empty if there is none.

    It is the first of a list, or, from version 2, in an object.
    """
    match args:
        case (
            [{"O": str(name)}, *_]
            | [{"name": {"O": str(name)}}, *_]
            | {"column_info": {"name": {"O": str(name)}}}
        ):
            return name
    return ""


def _clauses(job: Job) -> set[int]:
    """Return the types of a job's clauses."""
    return {job.type, *(part.type for part in job.sub_jobs())}


# --- actions -----------------------------------------------------------------------------------------


def _changes(before: Table, after: Table, kept: dict[str, str]) -> Iterator[Action]:
    """Yield changes of columns that stay in place, then all others from left to right.

    So the column that each follows exists, by its new name.
    """
    had = {column.name: column for column in before.columns}
    places = {column.name: place for place, column in enumerate(before.columns)}
    names = [column.name for column in after.columns]
    staying = _in_order([name for name in names if name in kept], {new: places[kept[new]] for new in kept})
    has = {column.name: column for column in after.columns}
    for name in staying:
        if had[kept[name]] != has[name]:
            yield ChangeColumn(kept[name], has[name], had[kept[name]])
    for number, (name, column) in enumerate(has.items()):
        follows = names[number - 1] if number else ""
        if name not in kept:
            at_end = kept.keys().isdisjoint(names[number:])
            yield AddColumn(column, None if at_end else follows)
        elif name not in staying:
            yield ChangeColumn(kept[name], column, had[kept[name]], follows)


def _in_order(names: Sequence[str], places: dict[str, int]) -> dict[str, None]:
    """Return the longest subsequence of the names whose places ascend."""
    least: list[int] = []  # least place at the end of an ascending sequence, by its length less one
    ends: list[str] = []
    before: dict[str, str | None] = {}
    for name in names:
        length = bisect_left(least, places[name])
        before[name] = ends[length - 1] if length else None
        least[length:] = [places[name], *least[length + 1 :]]
        ends[length:] = [name, *ends[length + 1 :]]
    order: list[str] = []
    place = ends[-1] if ends else None
    while place is not None:
        order.append(place)
        place = before[place]
    return dict.fromkeys(reversed(order))


def _without(table: Table, names: frozenset[str]) -> Table:
    """Return a table without some columns, which aren't in its key."""
    key = [table.columns[index].name for index in table.key]
    columns = tuple(column for column in table.columns if column.name not in names)
    places = {column.name: place for place, column in enumerate(columns)}
    return replace(table, columns=columns, key=tuple(places[name] for name in key if name in places))


def _applied(table: Table, actions: Sequence[Action]) -> Table:
    renamed = {
        action.name: action.column.name
        for action in actions
        if isinstance(action, ChangeColumn) and action.name != action.column.name
    }
    if not renamed.keys().isdisjoint(renamed.values()):  # not every target can follow that
        raise NotFollowed("columns exchange their names")
    try:
        return altered(table, actions)
    except StopIteration:
        raise NotFollowed("a column is changed that isn't there") from None


def _key_names(table: Table) -> list[str]:
    return [table.columns[index].name for index in table.key]
