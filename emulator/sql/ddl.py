"""DDL jobs as TiDB writes them: rows of mysql.tidb_ddl_job, or before v6.2 entries of a list.

A job waits, runs in steps, and is DONE in the transaction of the last one; then it is moved to the history as
SYNCED.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...codec.tidb import meta
from ...codec.tidb.action import Action
from ...codec.tidb.datum import Bare, Flag
from ...codec.tidb.job import (
    DONE,
    PUBLIC,
    QUEUEING,
    RUNNING,
    SYNCED,
    Job,
    JobOutcome,
    encode_job,
    make_args,
    make_outcome,
)
from ...codec.tidb.job_entry import JOB_COLUMN, JOB_TABLE_ID
from ...codec.tidb.key import record_key
from ...codec.tidb.old_row import join_row
from ...codec.tidb.table_info import DbInfo, TableInfo, encode_db_info, encode_table_info
from ...events import Ts
from ..pumps import Pumps
from .schema import Schema

Mutation = tuple[str, bytes, bytes]
"""A mutation of Cluster.write."""

HISTORY_TABLE_ID: Final = (1 << 48) - 4
"""mysql.tidb_ddl_history."""


class Writer(Protocol):
    def tso(self) -> Ts: ...

    def write(self, mutations: list[Mutation], *, start_ts: Ts = 0) -> Ts: ...


_UNLOGGED: Final = (Action.ALTER_CACHE_TABLE, Action.ALTER_NO_CACHE_TABLE)
"""Jobs that pumps don't get."""


class Step(Struct, frozen=True):
    """A step of a job before the last one: a schema version of its own."""

    schema_state: int
    mutations: list[Mutation]
    args: Any = None
    """The job's arguments from this step on; None if they stay."""
    is_logged: bool = False
    """True if pumps get it."""
    info: TableInfo | None = None
    """The table that sessions see from this step on; None if that doesn't change."""
    before: Callable[[], object] | None = None
    """Called before the step."""


class TableChange:
    """The changes of a job to the schema's keys, and their description."""

    def __init__(self, *, schema_id: int, table_id: int = 0) -> None:
        self.schema_id = schema_id
        self.table_id = table_id
        self.database: DbInfo | None = None
        self.table: TableInfo | None = None
        self.tables: list[TableInfo] = []
        self.steps: list[Step] = []
        self.done_args: object = None
        """Arguments of the job when it is done; None if they stay."""
        self.before_last: Callable[[], object] | None = None
        """Called after the steps before the last one."""
        self.moved: list[dict[str, int]] = []
        """Of several renamed tables the new `schema_id` and the `table_id`, as in a schema diff."""
        self.mutations: list[Mutation] = []

    def put_database(self, info: DbInfo) -> None:
        self.database = info
        self.mutations.append(database_mutation(info))

    def delete_database(self, info: DbInfo) -> None:
        self.database = info
        self.mutations.append(("delete", meta.hash_key(meta.DATABASES, meta.database_field(info.id)), b""))

    def put_table(self, schema_id: int, info: TableInfo) -> None:
        self.table = info
        self.mutations.append(table_mutation(schema_id, info))

    def delete_table(self, schema_id: int, table_id: int) -> None:
        self.mutations.append(("delete", table_key(schema_id, table_id), b""))

    def take_mutations(self) -> list[Mutation]:
        """Return the mutations so far, the last one of each key, for a step before the last one."""
        taken = {key: (op, key, value) for op, key, value in self.mutations}
        self.mutations = []
        return list(taken.values())


def database_mutation(info: DbInfo) -> Mutation:
    return "put", meta.hash_key(meta.DATABASES, meta.database_field(info.id)), encode_db_info(info)


def table_mutation(schema_id: int, info: TableInfo) -> Mutation:
    return "put", table_key(schema_id, info.id), encode_table_info(info)


def both(name: str) -> dict[str, str]:
    """Return a name as in TiDB's JSON."""
    return {"O": name, "L": name.lower()}


def table_key(schema_id: int, table_id: int) -> bytes:
    return meta.hash_key(meta.database_field(schema_id), meta.table_field(table_id))


class DdlWriter:
    """Runs jobs one at a time."""

    def __init__(self, writer: Writer, schema: Schema, pumps: Pumps, *, job_table: bool = True) -> None:
        self._writer = writer
        self._schema = schema
        self._pumps = pumps
        self._job_table = job_table

    def run(self, job: Job, change: TableChange, between: Callable[[], object]) -> Ts:
        """Run a job; return the commit ts of its last step. `between` is called after each step before."""
        job = replace(job, id=self._schema.new_id(), start_ts=self._writer.tso(), state=QUEUEING)
        job = replace(job, outcome=JobOutcome())
        self._write(("put", meta.string_key(meta.NEXT_GLOBAL_ID), b"%d" % self._schema.last_id))
        self._write(*self._wait(job))
        if self._job_table:
            self._write(("put", _row_key(job), _row(job, processing=1)))
        for step in change.steps:
            if step.before is not None:
                step.before()
            args = job.raw_args if step.args is None else make_args(step.args)
            job = replace(job, state=RUNNING, schema_state=step.schema_state, raw_args=args)
            job, _ = self._step(job, step.mutations, change.moved, logged=step.is_logged)
            if step.info is not None:
                self._schema.set_table(self._schema.database(job.schema_name), step.info)
            between()
        if change.before_last is not None:
            change.before_last()
        version = self._schema.new_version()
        outcome = make_outcome(version, db=change.database, table=change.table, tables=change.tables)
        args = job.raw_args if change.done_args is None else make_args(change.done_args)
        done = replace(job, state=DONE, schema_state=PUBLIC, schema_id=change.schema_id, outcome=outcome)
        done = replace(done, raw_args=args)
        logged = job.type not in _UNLOGGED
        done, committed = self._step(done, change.mutations, change.moved, version, logged=logged)
        finished = replace(outcome, finished_ts=self._writer.tso())
        # The history has no arguments, except of jobs that leave keys to delete.
        synced = replace(done, state=SYNCED, outcome=finished, raw_args=make_args(None))
        self._write(*self._leave(synced))
        return committed

    def _step(
        self,
        job: Job,
        mutations: list[Mutation],
        moved: Sequence[dict[str, int]],
        version: int = 0,
        *,
        logged: bool = True,
    ) -> tuple[Job, Ts]:
        """Write a step of a job, with a new version; return the job, and the commit ts."""
        start_ts = self._writer.tso()
        version = version or self._schema.new_version()
        job = replace(job, real_start_ts=job.real_start_ts or start_ts)
        every = [*mutations, *self._version(job, version, moved), *self._running(job)]
        if logged:
            committed = self._log(job, every, start_ts)
        else:
            committed = self._writer.write(every, start_ts=start_ts)
        self._schema.public_version = version
        return job, committed

    def _log(self, job: Job, mutations: list[Mutation], start_ts: Ts) -> Ts:
        """Write a step of a job that pumps get; return its commit ts."""
        return self._pumps.write(
            start_ts,
            lambda: self._writer.write(mutations, start_ts=start_ts),
            prewrite_key=mutations[0][1],
            ddl_query=job.query.encode(),
            ddl_job_id=job.id,
            ddl_schema_state=job.schema_state,
        )

    def _running(self, job: Job) -> list[Mutation]:
        if self._job_table:
            return [("put", _row_key(job), _row(job, processing=1))]
        return [("put", meta.list_key(meta.DDL_JOBS, 0), encode_job(job))]

    def _write(self, *mutations: Mutation) -> Ts:
        return self._writer.write(list(mutations))

    def _wait(self, job: Job) -> list[Mutation]:
        if self._job_table:
            return [("insert", _row_key(job), _row(job, processing=0))]
        bounds = meta.encode_list_meta(0, 1)
        return [
            ("put", meta.list_meta_key(meta.DDL_JOBS), bounds),
            ("put", meta.list_key(meta.DDL_JOBS, 0), encode_job(job)),
        ]

    def _version(self, job: Job, version: int, moved: Sequence[dict[str, int]] = ()) -> list[Mutation]:
        first, *others = moved or [{"schema_id": job.schema_id, "table_id": job.table_id}]
        diff = {"version": version, "type": job.type, **first, "affected_options": others or None}
        return [
            ("put", meta.string_key(meta.SCHEMA_VERSION), b"%d" % version),
            ("put", meta.string_key(meta.schema_diff(version)), msgspec.json.encode(diff)),
        ]

    def _leave(self, job: Job) -> list[Mutation]:
        data = encode_job(job)
        history: Mutation = ("put", meta.hash_key(meta.DDL_HISTORY, meta.history_field(job.id)), data)
        if self._job_table:
            row = join_row({2: (Flag.COMPACT_BYTES, data)})
            return [
                history,
                ("put", record_key(HISTORY_TABLE_ID, job.id), row),
                ("delete", _row_key(job), b""),
            ]
        return [
            history,
            ("delete", meta.list_meta_key(meta.DDL_JOBS), b""),
            ("delete", meta.list_key(meta.DDL_JOBS, 0), b""),
        ]


def _row_key(job: Job) -> bytes:
    return record_key(JOB_TABLE_ID, job.id)


def _row(job: Job, *, processing: int) -> bytes:
    """Build a row of mysql.tidb_ddl_job: reorg, schema_ids, table_ids, job_meta, type, processing."""
    datums: dict[int, tuple[Flag, Bare]] = {
        2: (Flag.VARINT, 0),
        3: (Flag.COMPACT_BYTES, b"%d" % job.schema_id),
        4: (Flag.COMPACT_BYTES, b"%d" % job.table_id),
        JOB_COLUMN: (Flag.COMPACT_BYTES, encode_job(job)),
        6: (Flag.VARINT, job.type),
        7: (Flag.VARINT, processing),
    }
    return join_row(datums)
