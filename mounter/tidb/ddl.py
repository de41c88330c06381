"""Effects of finished DDL jobs on the followed tables, for sinks.

Adding and dropping columns is followed, and so are new tables. Jobs that change no row are ignored: indexes,
comments, statistics, placement, a new partition. Any other job is refused: the feed stops there with an error
that names the job and its statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from ...codec.tidb.action import Action as JobType
from ...codec.tidb.job import Job
from ...codec.tidb.table import to_table
from ...events import Action, AddColumn, CreateTable, Ddl, KvChange, Ts
from ..tables import Tables
from .columns import OTHER_KEY, NotFollowed, column_actions, session_clock
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
    JobType.TRUNCATE_TABLE: "TRUNCATE TABLE: rows go without events",
    JobType.RENAME_TABLE: "RENAME TABLE",
    JobType.RENAME_TABLES: "RENAME TABLE",
    JobType.RECOVER_TABLE: "RECOVER or FLASHBACK TABLE: rows come back without events",
}
"""Jobs that can't be followed even if no column differs before and after.

They change rows without change events, or rename tables some time before the job is done, as a restart may
find them.
"""


class _Change(Struct, frozen=True):
    """Effect of a job on one followed table: actions, or a refusal that says why it can't be followed."""

    schema: str
    table: str
    """Empty if the job is about the whole schema."""
    actions: tuple[Action, ...] = ()
    refusal: str = ""
    clock: tuple[float, int] = (0.0, 0)
    """Unix seconds and UTC offset in seconds, for defaults such as CURRENT_TIMESTAMP."""


_Pair: TypeAlias = tuple[TableAt | None, TableAt | None]
"""A table before and after a job; None if it doesn't exist then."""


def read_ddl(job: Job, change: KvChange, history: SchemaHistory, tables: Tables, source: str) -> list[Ddl]:
    """Return the effects of a finished job, one Ddl per followed table; a refusal comes last.

    `change` is the one that the job was read from. Raises SourceError if an info can't be decoded.
    """
    commit_ts, start_ts = change.commit_ts, change.start_ts
    found = []
    for made in _changes(job, commit_ts, history, tables):
        ddl = Ddl(
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
        )
        found.append(ddl)
        if made.refusal:
            break
    return found


def existing_tables(history: SchemaHistory, ts: Ts, tables: Tables, source: str) -> Iterator[Ddl]:
    """Yield the followed tables at `ts` as if created then, for a sink that has none of them yet."""
    for table in history.tables(ts, tables.matches):
        made = CreateTable(to_table(table.schema, table.info))
        yield Ddl(ts, ts, source, table.schema, table.info.name, "", (made,), position=str(ts))


def _changes(job: Job, ts: Ts, history: SchemaHistory, tables: Tables) -> Iterator[_Change]:
    match job.type:
        case JobType.FLASHBACK_CLUSTER:
            yield _refusal("", "", "FLASHBACK CLUSTER: all rows go back without events", job, ts)
            return
        case JobType.RECOVER_SCHEMA:
            if tables.touches(job.schema_name):
                what = "FLASHBACK DATABASE: rows come back without events"
                yield _refusal(job.schema_name, "", what, job, ts)
            return
    for before, after in _pairs(history.changes(job.id, ts)):
        names = [(table.schema, table.info.name) for table in (before, after) if table is not None]
        followed = any(tables.matches(*name) for name in names)
        if followed or (_same_name(before, after) and _may_have_been_followed(job, history, tables)):
            schema, table = names[0]
            try:
                change = _change(job, before, after)
            except NotFollowed as what:
                yield _refusal(schema, table, str(what), job, ts)
            else:
                if change.actions:
                    yield change


def _same_name(before: TableAt | None, after: TableAt | None) -> bool:
    return before is not None and after is not None and before.name == after.name


def _may_have_been_followed(job: Job, history: SchemaHistory, tables: Tables) -> bool:
    """Return True if a job renames tables whose old names may have been followed.

    TiDB renames one transaction before the job is done: a feed that begins in between knows only a table's
    new name. The finished job no longer has the old database, or, for several tables, the old names.
    """
    match job.type:
        case JobType.RENAME_TABLE:
            return any(tables.matches(schema, job.table_name) for schema in history.schemas())
        case JobType.RENAME_TABLES:
            return any(map(tables.touches, history.schemas()))
    return False


def _pairs(changes: list[_Pair]) -> Iterator[_Pair]:
    """Yield tables before and after the job, also if a table continues under another id."""
    made = {after.name: after for before, after in changes if before is None and after is not None}
    for before, after in changes:
        if before is None:
            continue
        yield before, after if after is not None else made.pop(before.name, None)
    for table in made.values():
        yield None, table


def _change(job: Job, before: TableAt | None, after: TableAt | None) -> _Change:
    """Return the change of one table; None if there is none. Raises NotFollowed with the reason."""
    if after is None:
        raise NotFollowed(job.name.upper())
    if before is not None and before.name != after.name:
        raise NotFollowed(f"RENAME TO {after.name}")
    if job.type in _SILENT:
        raise NotFollowed(_SILENT[job.type])
    if job.type in (JobType.ADD_PRIMARY_KEY, JobType.DROP_PRIMARY_KEY):
        raise NotFollowed(OTHER_KEY)  # else a feed that begins in the middle of the job may miss it
    info = after.info
    table = to_table(after.schema, info)
    if before is None:
        return _Change(table.schema, table.name, (CreateTable(table),))
    actions = column_actions(job, before.info, to_table(before.schema, before.info), info, table)
    clock = session_clock(job, info, [a.column.name for a in actions if isinstance(a, AddColumn)])
    return _Change(table.schema, table.name, actions, clock=clock)


def _refusal(schema: str, table: str, what: str, job: Job, ts: Ts) -> _Change:
    statement = " ".join(job.query.split()) or job.name
    if len(statement) > _QUOTED_CHARACTERS:
        statement = statement[:_QUOTED_CHARACTERS] + " ..."
    where = f"table {schema}.{table}" if table else f"schema {schema}" if schema else "the cluster"
    why = f"{where}: DDL job {job.id} at ts {ts} can't be followed ({what}), only new tables and adding and"
    return _Change(schema, table, refusal=f"{why} dropping columns can: {statement}; {HOW_TO_GO_ON}")
