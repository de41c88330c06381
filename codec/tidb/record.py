"""One binlog of a pump, and its place in the pump's log."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from ...events import PUT, KvChange, Ts
from ..proto import binlog
from . import meta

_TYPE: Final = binlog.BinlogType

_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
"""First bytes of compressed data, which can't be those of a binlog."""

_JOB_KEY: Final = meta.list_key(meta.DDL_JOBS, 0)


class UnreadableRecord(ValueError):
    """A message is not a binlog; `position` is its place in the pump's log as far as it is known."""

    def __init__(self, reason: str, position: tuple[int, int] | None = None) -> None:
        super().__init__(reason)
        self.position = position


class JobRecord(Struct, frozen=True, gc=False):
    """A step of a DDL job; the job itself is in TiKV."""

    commit_ts: Ts
    start_ts: Ts
    job_id: int
    state: int
    query: str


def read_record(data: bytes) -> Any:
    """Return the binlog.Binlog in a serialised PullBinlogResp. Raises UnreadableRecord."""
    try:
        entity = binlog.PullBinlogResp.FromString(data).entity
    except DecodeError as error:
        raise UnreadableRecord(f"not a PullBinlogResp: {error}: {data[:64].hex()}") from error
    payload = entity.payload
    try:
        record = binlog.Binlog.FromString(payload)
        if record.commit_ts:
            return record
        reason = "it has no commit ts"
    except DecodeError as error:
        reason = str(error)
    kind = next((name for head, name in _COMPRESSED.items() if payload.startswith(head)), "")
    if kind:
        reason = f"it is compressed ({kind}), which pumps don't do by themselves"
    place = entity.pos.suffix, entity.pos.offset
    raise UnreadableRecord(f"{reason}: {payload[:64].hex()}", place)


def is_fake(record: Any) -> bool:
    """True for a binlog without a transaction, by which a pump tells how far it has come."""
    return bool(record.tp == _TYPE.Rollback or record.start_ts == record.commit_ts)


def job_record(record: Any) -> JobRecord:
    """Return the step of a DDL job in a binlog with a `ddl_job_id`."""
    query = record.ddl_query.decode("utf-8", "replace")
    return JobRecord(record.commit_ts, record.start_ts, record.ddl_job_id, record.ddl_schema_state, query)


def rows_change(record: Any, origin: int) -> KvChange:
    """Return the change with a transaction's rows, whose value is the PrewriteValue. Raises ValueError for a
    binlog of another kind.

    `origin` is the number of its pump.
    """
    if record.tp != _TYPE.Commit or not record.prewrite_value:
        raise ValueError(f"it is of type {record.tp}, without rows and without a DDL job")
    return KvChange(record.commit_ts, record.start_ts, PUT, b"", record.prewrite_value, b"", origin)


def job_change(step: JobRecord, job: bytes, origin: int) -> KvChange:
    """Return the change with a DDL job, in the form of an entry of the job queue."""
    return KvChange(step.commit_ts, step.start_ts, PUT, _JOB_KEY, job, b"", origin)


def read_rows(data: bytes) -> Any:
    """Return the binlog.PrewriteValue. Raises ValueError."""
    try:
        return binlog.PrewriteValue.FromString(data)
    except DecodeError as error:
        raise ValueError(f"{error}: {data[:64].hex()}") from error
