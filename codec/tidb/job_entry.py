"""DDL jobs among raw changes: the rows of mysql.tidb_ddl_job and the entries of the two lists."""

from __future__ import annotations

from typing import Final

from ...errors import SourceError
from ...events import PUT, KvChange
from . import meta
from .field import UNREADABLE
from .job import Job, decode_job
from .key import decode_int, record_prefix
from .layout import VERSION, cells_of, layout_of
from .old_row import split_row

JOB_TABLE_ID: Final = (1 << 48) - 2
"""mysql.tidb_ddl_job, used since TiDB v6.2."""

JOB_COLUMN: Final = 5
"""Id of its column job_meta, in every version so far."""

_NEW_ROW: Final = bytes((VERSION,))
"""First byte of a row of format 2."""

_ROWS: Final = record_prefix(JOB_TABLE_ID)

JOB_KEYS: Final = (meta.PREFIX, _ROWS)
"""Prefixes of the keys of job entries, and of no user's row: for bytes.startswith."""


def read_job(change: KvChange) -> Job | None:
    """Return the job that a change stores; None for other changes (a deletion, a list's bounds, other schema
    keys).

    Raises SourceError if the job can't be read.
    """
    key, value = change.key, change.value
    if change.op != PUT:
        return None
    if key.startswith(_ROWS):
        try:
            job_id = decode_int(key, len(_ROWS))
        except ValueError as error:
            raise _bad_key(change, error) from error
        try:
            data = _column(value, JOB_COLUMN)
        except UNREADABLE as error:
            raise SourceError(
                f"DDL job {job_id} at ts {change.commit_ts} can't be read: its row in"
                f" mysql.tidb_ddl_job: {error}"
            ) from error
        return None if data is None else decode_job(data, change.commit_ts)
    if key[:1] == meta.PREFIX:
        try:
            meta_key = meta.decode_meta_key(key)
        except ValueError as error:
            raise _bad_key(change, error) from error
        if meta_key.kind == "list" and meta_key.name in (meta.DDL_JOBS, meta.DDL_INDEX_JOBS):
            return decode_job(value, change.commit_ts)
    return None


def _bad_key(change: KvChange, why: Exception) -> SourceError:
    return SourceError(
        f"the key {change.key.hex()}, written at ts {change.commit_ts} among the DDL jobs, can't be read:"
        f" {why}. This may be a TiDB newer than tidemill knows"
    )


def _column(value: bytes, wanted: int) -> bytes | None:
    """Return the bytes of one column of a row in either format; None if it is NULL or absent.

    Raises ValueError for bytes that aren't a row.
    """
    if value[:1] == _NEW_ROW:
        return cells_of(layout_of(value), value).get(wanted)
    _, bare = split_row(value).get(wanted, (None, None))
    return bare if isinstance(bare, bytes) else None
