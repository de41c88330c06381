"""Effects of finished DDL jobs on the followed tables, for sinks.

A job is followed if its effect on the rows of every followed table is known exactly. Jobs that change no row
are ignored: indexes, comments, statistics, placement, a new partition; unless sinks tell indexes and the
like. After any other job its tables are loaded again; if the source can't do that, or the tables aren't
known, the job is refused: the feed stops there with an error that names the job and its statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from ...chain.selection.tables import TablePatterns
from ...codec.tidb.action import Action as JobType
from ...codec.tidb.details import details_of
from ...codec.tidb.job import Job
from ...codec.tidb.table import to_table
from ...events import (
    Action,
    AddColumn,
    ChangeDetails,
    CreateTable,
    Ddl,
    Details,
    DropTable,
    KvChange,
    RenameTables,
    TruncateTable,
    Ts,
)
from .clock import session_clock
from .columns import NotFollowed, check_not_rewritten, column_actions
from .history import SchemaHistory, TableAt

_QUOTED_CHARACTERS: Final = 1000
"""Maximum number of characters of a statement that an error quotes."""

HOW_TO_GO_ON: Final = (
    "to go on, leave the table out of the feed's tables, or give the feed an empty target and begin after"
    " this job"
)

_SILENT: Final[dict[int, str]] = {
    JobType.DROP_TABLE_PARTITION: "DROP PARTITION: rows go without events",
    JobType.TRUNCATE_TABLE_PARTITION: "TRUNCATE PARTITION: rows go without events",
    JobType.EXCHANGE_TABLE_PARTITION: "EXCHANGE PARTITION: rows change places without events",
    JobType.RECOVER_TABLE: "RECOVER or FLASHBACK TABLE: rows come back without events",
}
"""Jobs that change rows without change events."""

_RENAMES: Final = (JobType.RENAME_TABLE, JobType.RENAME_TABLES)
_NOT_LOADED: Final = "its rows aren't in the feed"


class _Change(Struct, frozen=True):
    """Effect of a job on one followed table: actions, or why they aren't known."""

    schema: str
    table: str
    """Empty if the job is about the whole schema."""
    actions: tuple[Action, ...] = ()
    refusal: str = ""
    reload: str = ""
    clock: tuple[float, int] = (0.0, 0)
    """Unix seconds and UTC offset in seconds, for defaults such as CURRENT_TIMESTAMP."""


_Pair: TypeAlias = tuple[TableAt | None, TableAt | None]
"""A table before and after a job; None if it doesn't exist then."""


def read_ddl(
    job: Job,
    change: KvChange,
    history: SchemaHistory,
    tables: TablePatterns,
    source: str,
    *,
    of_pumps: bool = False,
    details: bool = False,
) -> list[Ddl]:
    """Return the effects of a finished job: one Ddl per followed table, and one for all that are renamed.

    If one is refused, it is the only one. `change` is the one that the job was read from. With `of_pumps`,
    parts of a job that take effect before it is done aren't known, and tables can't be loaded again. With
    `details`, changes of indexes and the like are told, not exactly enough for copies. Raises SourceError if
    an info can't be decoded.
    """
    commit_ts, start_ts = change.commit_ts, change.start_ts
    changes = list(_changes(job, commit_ts, history, tables, of_pumps=of_pumps, details=details))
    return [
        Ddl(
            commit_ts,
            start_ts,
            source,
            made.schema,
            made.table,
            job.query,
            made.actions,
            refusal=made.refusal,
            epoch_seconds=made.clock[0],
            last=False,
            utc_offset_seconds=made.clock[1],
            reload=made.reload,
        )
        for made in [one for one in changes if one.refusal][:1] or changes
    ]


def _changes(
    job: Job, ts: Ts, history: SchemaHistory, tables: TablePatterns, *, of_pumps: bool, details: bool
) -> Iterator[_Change]:
    unknown = _refusal if of_pumps else _reload
    match job.type:
        case JobType.FLASHBACK_CLUSTER:
            yield _refusal("", "", "FLASHBACK CLUSTER: all rows go back without events", job, ts)
            return
        case JobType.RECOVER_SCHEMA:
            database = job.db_info()  # the job's own schema_name is empty
            if database is not None and tables.touches(database.name):
                what = "FLASHBACK DATABASE: rows come back without events"
                yield _refusal(database.name, "", what, job, ts)
            return
    changes = history.changes(job.id, ts)
    if job.type in _RENAMES:
        yield from _renames(changes, job, ts, tables, unknown)
        return
    for before, after in _pairs(changes):
        names = [(table.schema, table.info.name) for table in (before, after) if table is not None]
        if any(tables.matches(*name) for name in names):
            try:
                change = _change(job, before, after, of_pumps=of_pumps, details=details)
            except NotFollowed as what:
                yield unknown(*names[0], str(what), job, ts)
            else:
                if change.actions:
                    yield change


def _renames(
    changes: list[_Pair], job: Job, ts: Ts, tables: TablePatterns, unknown: Callable[..., _Change]
) -> Iterator[_Change]:
    """Yield the effects of renaming tables: drops, then all renames at once, then loads.

    A table that isn't followed under its new name is dropped, and one that wasn't under its old name is
    loaded.
    """
    pairs = []
    loads = []
    for before, after in changes:
        new = None if after is None else (after.schema, after.info.name)
        if before is None:  # a table of TiDB's own
            if new is not None and tables.matches(*new):
                loads.append(unknown(*new, f"RENAME TABLE: {_NOT_LOADED}", job, ts))
            continue
        old = before.schema, before.info.name
        if old == new:
            continue
        was_followed, is_followed = tables.matches(*old), new is not None and tables.matches(*new)
        if new is not None and was_followed and is_followed:
            pairs.append((old, new))
        elif was_followed:
            yield _Change(*old, (DropTable(),))
        elif new is not None and is_followed:
            loads.append(unknown(*new, f"RENAME TABLE from {before.name}: {_NOT_LOADED}", job, ts))
    if pairs:
        yield _Change(*pairs[0][0], (RenameTables(tuple(pairs)),))
    yield from loads


def _pairs(changes: list[_Pair]) -> Iterator[_Pair]:
    """Yield tables before and after the job, also if a table continues under another id."""
    made = {after.name: after for before, after in changes if before is None and after is not None}
    for before, after in changes:
        if before is None:
            continue
        yield before, after if after is not None else made.pop(before.name, None)
    for table in made.values():
        yield None, table


def _change(
    job: Job, before: TableAt | None, after: TableAt | None, *, of_pumps: bool, details: bool
) -> _Change:
    """Return the change of one table, which keeps its name. Raises NotFollowed with the reason."""
    if job.type in _SILENT:
        raise NotFollowed(_SILENT[job.type])
    if before is None:
        assert after is not None
        table = to_table(after.schema, after.info)
        told = [ChangeDetails(Details(), details_of(after.info), table)] * details
        return _Change(table.schema, table.name, (CreateTable(table), *told))
    if after is None:
        return _Change(before.schema, before.info.name, (DropTable(),))
    if job.type == JobType.TRUNCATE_TABLE:
        return _Change(before.schema, before.info.name, (TruncateTable(),))
    info = after.info
    table = to_table(after.schema, info)
    old = to_table(before.schema, before.info)
    actions = column_actions(job, before.info, old, info, table, of_pumps=of_pumps)
    if of_pumps and job.type == JobType.MULTI_SCHEMA_CHANGE:
        check_not_rewritten(actions, before.info, info)
    clock = session_clock(job, info, [a.column.name for a in actions if isinstance(a, AddColumn)])
    if details:
        changed = ChangeDetails(details_of(before.info), details_of(info), table)
        if actions or changed.before != changed.after:
            actions = (*actions, changed)
    return _Change(table.schema, table.name, actions, clock=clock)


def _refusal(schema: str, table: str, what: str, job: Job, ts: Ts) -> _Change:
    where = f"table {schema}.{table}" if table else f"schema {schema}" if schema else "the cluster"
    why = f"{where}: DDL job {job.id} at ts {ts} can't be followed ({what})"
    return _Change(schema, table, refusal=f"{why}: {_statement(job)}; {HOW_TO_GO_ON}")


def _reload(schema: str, table: str, what: str, job: Job, ts: Ts) -> _Change:
    why = f"table {schema}.{table}: loaded again after DDL job {job.id} at ts {ts} ({what})"
    return _Change(schema, table, reload=f"{why}: {_statement(job)}")


def _statement(job: Job) -> str:
    statement = " ".join(job.query.split()) or job.name
    if len(statement) > _QUOTED_CHARACTERS:
        statement = statement[:_QUOTED_CHARACTERS] + " ..."
    return statement
