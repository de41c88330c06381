"""Tables that have their new names before the job that renames them is done.

TiDB renames in the first step of a job, and the job is done one transaction later. A feed renames the table
when the job is done, so a schema that is read in between gets the old names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from msgspec import MsgspecError, Struct, convert

from ...codec.tidb import meta
from ...codec.tidb.action import Action
from ...codec.tidb.job import PUBLIC, RUNNING, Job
from ...codec.tidb.job_entry import JOB_TABLE_ID, read_job
from ...codec.tidb.key import record_span
from ...codec.tidb.table_info import decode_table_info
from ...errors import SourceError
from ...events import PUT, KvChange, Ts
from .schema import Reads, Schema

_RENAMES: Final = (Action.RENAME_TABLE, Action.RENAME_TABLES)


class _Renamed(Struct, frozen=True):
    """A table in the arguments of a job, from version 2 on."""

    old_schema_id: int = 0
    table_id: int = 0


class _RenamedTables(Struct, frozen=True):
    rename_table_infos: list[_Renamed]


async def job_entries(kv: Reads, ts: Ts) -> AsyncIterator[KvChange]:
    """Yield the entries of jobs that wait or run at `ts`, for read_job."""
    spans = [record_span(JOB_TABLE_ID)]
    spans += [meta.list_span(name) for name in (meta.DDL_JOBS, meta.DDL_INDEX_JOBS)]
    for start, end in spans:
        async for key, value in kv.scan(start, end, ts):
            yield KvChange(ts, ts, PUT, key, value)


async def add_old_names(kv: Reads, ts: Ts, schema: Schema) -> None:
    """Redefine the tables that are renamed at `ts` by a job that isn't done, as they were before the job.

    Raises SourceError if that isn't known any more.
    """
    async for entry in job_entries(kv, ts):
        try:
            job = read_job(entry)
        except SourceError:  # the feed stops when the job is done
            continue
        if job and job.type in _RENAMES and job.state == RUNNING and job.schema_state == PUBLIC:
            for table_id, database_id in _old_databases(job).items():
                key = meta.hash_key(meta.database_field(database_id), meta.table_field(table_id))
                # The job's first transaction began at this ts, and no other job changes the table meanwhile.
                data = await kv.get(key, job.real_start_ts)
                if data is None:
                    raise SourceError(
                        f"the schema at ts {ts} can't be read: table id {table_id} was just being renamed by"
                        f" DDL job {job.id} ({job.query}), and its old name is no longer in TiKV, as garbage"
                        " was collected: start again with an empty target"
                    )
                schema.add_table(database_id, decode_table_info(data))


def _old_databases(job: Job) -> dict[int, int]:
    """Return the database before the job of each renamed table, by table id. Raises SourceError.

    A table may be renamed twice in one job. Version 1 of the arguments is a list that begins with the old
    database, or with the lists of old databases, new databases, new names and tables.
    """
    args = job.args()
    several = job.type == Action.RENAME_TABLES
    try:
        if isinstance(args, dict):
            renames = (
                convert(args, _RenamedTables).rename_table_infos if several else [convert(args, _Renamed)]
            )
            pairs = [(one.table_id or job.table_id, one.old_schema_id) for one in renames]
        elif several:
            old_ids, _, _, table_ids, *_ = args
            pairs = list(zip(convert(table_ids, list[int]), convert(old_ids, list[int]), strict=True))
        else:
            pairs = [(job.table_id, convert(args[0], int))]
    except (TypeError, ValueError, IndexError, MsgspecError) as error:
        raise job.unreadable("arguments", error) from error
    return dict(reversed(pairs))
