"""TiDB's DDL jobs, which change the schema at the ts of the transaction that ends them.

A job is JSON. TiDB keeps waiting and running jobs as rows of mysql.tidb_ddl_job (since v6.2) or as entries of
two lists (before), and stores the job again at each progress. The version with state DONE is stored in the
transaction of the schema change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from ...errors import SourceError
from ...events import Ts
from .action import Action, action_name
from .info_json import decode
from .table_info import (
    DbInfo,
    TableInfo,
    decode_db_info,
    decode_table_info,
    encode_db_info,
    encode_table_info,
)

# States of a job (TiDB: JobState).
NONE: Final = 0
RUNNING: Final = 1
ROLLING_BACK: Final = 2
ROLLBACK_DONE: Final = 3
DONE: Final = 4
CANCELLED: Final = 5
SYNCED: Final = 6
CANCELLING: Final = 7
QUEUEING: Final = 8
PAUSED: Final = 9
PAUSING: Final = 10

# States of what a job makes or removes (TiDB: SchemaState).
ABSENT: Final = 0
DELETE_ONLY: Final = 1
WRITE_ONLY: Final = 2
WRITE_REORGANIZATION: Final = 3
DELETE_REORGANIZATION: Final = 4
PUBLIC: Final = 5

_NULL_BYTES: Final = b"null"
_NULL: Final = Raw(_NULL_BYTES)
_T = TypeVar("_T")


class JobOutcome(Struct, frozen=True, kw_only=True):
    """The infos after the job. (TiDB: HistoryInfo, the job's "binlog".)"""

    schema_version: int = field(default=0, name="SchemaVersion")
    db_info_json: Raw = field(default=_NULL, name="DBInfo")
    table_info_json: Raw = field(default=_NULL, name="TableInfo")
    finished_ts: Ts = field(default=0, name="FinishedTS")
    """Ts at which it was moved to the history; 0 while it is DONE, in every version that the test vectors
    cover."""
    table_infos_json: list[Raw] | None = field(default=None, name="MultipleTableInfos")


class SubJob(Struct, frozen=True, kw_only=True):
    """One clause of a multi-schema change."""

    type: int
    raw_args: Raw = _NULL
    state: int = NONE
    schema_state: int = ABSENT


class SubJobs(Struct, frozen=True, kw_only=True):
    sub_jobs: list[SubJob] | None = None


class Location(Struct, frozen=True, kw_only=True):
    """A session's time zone: a name, or seconds ahead of UTC."""

    name: str = ""
    offset: int = 0


class ReorgMeta(Struct, frozen=True, kw_only=True):
    location: Location | None = None


class Job(Struct, frozen=True, kw_only=True):
    """A DDL job; the fields are TiDB's."""

    id: int
    type: int
    """An Action, or the number of one that only a newer TiDB has."""
    schema_id: int = 0
    table_id: int = 0
    schema_name: str = ""
    table_name: str = ""
    """Name of the table before the job."""
    state: int = NONE
    error: Raw = field(default=_NULL, name="err")
    row_count: int = 0
    raw_args: Raw = _NULL
    """The arguments of the job's type, as a list; from TiDB v8.4 on, with version 2, an object."""
    schema_state: int = ABSENT
    snapshot_ver: int = 0
    real_start_ts: Ts = 0
    start_ts: Ts = 0
    query: str = ""
    """The statement; "" for jobs that TiDB starts by itself."""
    outcome: JobOutcome | None = field(default=None, name="binlog")
    version: int = 1
    reorg_meta: ReorgMeta | None = None
    multi_schema_info: SubJobs | None = None
    seq_num: int = 0
    charset: str = ""
    collate: str = ""

    @property
    def name(self) -> str:
        """TiDB's name for jobs of this type."""
        return action_name(self.type)

    @property
    def is_done(self) -> bool:
        """True if the schema change is complete: DONE, or after it SYNCED (all TiDB servers know it)."""
        return self.state in (DONE, SYNCED)

    @property
    def is_in_effect(self) -> bool:
        """True if sessions see its infos: it is done, or a part of it is.

        A multi-schema change shows its new columns when all of them are ready, and is DONE only after its
        other clauses. From then on it isn't rolled back.
        """
        if self.type == Action.MULTI_SCHEMA_CHANGE and self.state == RUNNING:
            return self.outcome is not None and bytes(self.outcome.table_info_json) != _NULL_BYTES
        return self.is_done

    @property
    def shows_in_rows(self) -> bool:
        """True if rows are by the table after the job, which isn't done and isn't rolled back any more.

        After rewriting rows for a column of another type, newer versions of TiDB take the old one away in
        further steps, in which new rows no longer have it. While a primary key is dropped, rows may share
        one.
        """
        if self.state != RUNNING:
            return False
        if self.type == Action.DROP_PRIMARY_KEY:
            return self.schema_state != PUBLIC
        return self.type == Action.MODIFY_COLUMN and self.schema_state == PUBLIC

    @property
    def schema_version(self) -> int:
        return self.outcome.schema_version if self.outcome else 0

    def db_info(self) -> DbInfo | None:
        """The info after the job. Raises SourceError if it can't be read."""
        return self._read(decode_db_info, self.outcome.db_info_json if self.outcome else _NULL)

    def table_info(self) -> TableInfo | None:
        """The info after the job. Raises SourceError if it can't be read."""
        return self._read(decode_table_info, self.outcome.table_info_json if self.outcome else _NULL)

    def table_infos(self) -> list[TableInfo]:
        """The infos of a job on several tables. Raises SourceError if they can't be read."""
        listed = (self.outcome.table_infos_json if self.outcome else None) or []
        infos = (self._read(decode_table_info, raw) for raw in listed)
        return [info for info in infos if info is not None]

    def args(self, type_: Any = Any, *, of: SubJob | None = None) -> Any:
        """Return the arguments of the job, or of one of its clauses: a list, or from version 2 on a dict;
        None if there are none. Raises SourceError if they aren't of type `type_`."""
        decoder = msgspec.json.Decoder(type_)
        return self._read(lambda data: decode(decoder, data), (of or self).raw_args, "arguments")

    def sub_jobs(self) -> list[SubJob]:
        """Return the clauses of a multi-schema change; empty for other jobs."""
        return (self.multi_schema_info.sub_jobs if self.multi_schema_info else None) or []

    def unreadable(self, what: str, why: object) -> SourceError:
        """Return the error for a part of the job that can't be read."""
        return SourceError(
            f"DDL job {self.id} ({self.name}): its {what} can't be read: {why}. The statement is"
            f" {self.query!r}; this may be a TiDB newer than tidemill knows"
        )

    def _read(self, decode: Callable[[bytes], _T], raw: Raw, what: str = "info") -> _T | None:
        data = bytes(raw)
        if data == _NULL_BYTES:
            return None
        try:
            return decode(data)
        except ValueError as error:
            raise self.unreadable(what, error) from error


_DECODER: Final = msgspec.json.Decoder(Job)
_ENCODER: Final = msgspec.json.Encoder()
_ID: Final = re.compile(rb'"id"\s*:\s*(\d+)')


def decode_job(data: bytes, ts: Ts = 0) -> Job:
    """Read a job. Raises SourceError if that fails, naming the job's id and `ts`, the commit ts of its
    key."""
    try:
        return decode(_DECODER, data)
    except ValueError as error:
        match = _ID.search(data[:200])
        number = match[1].decode() if match else "of unknown id"
        raise SourceError(
            f"DDL job {number} at ts {ts} can't be read: {error}. This may be a TiDB newer than tidemill"
            f" knows, or a damaged entry; ADMIN SHOW DDL JOBS shows what the job is"
        ) from error


def encode_job(job: Job) -> bytes:
    """Encode a job as TiDB reads it."""
    return _ENCODER.encode(job)


def make_outcome(
    schema_version: int,
    *,
    db: DbInfo | None = None,
    table: TableInfo | None = None,
    tables: Iterable[TableInfo] = (),
    finished_ts: Ts = 0,
) -> JobOutcome:
    """Return the outcome of a job, from infos."""
    listed = [Raw(encode_table_info(info)) for info in tables]
    return JobOutcome(
        schema_version=schema_version,
        db_info_json=Raw(encode_db_info(db)) if db else _NULL,
        table_info_json=Raw(encode_table_info(table)) if table else _NULL,
        table_infos_json=listed or None,
        finished_ts=finished_ts,
    )


def make_args(args: object) -> Raw:
    """Encode a job's arguments."""
    return Raw(_ENCODER.encode(args))
