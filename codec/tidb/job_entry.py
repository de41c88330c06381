"""DDL jobs among raw changes: the rows of mysql.tidb_ddl_job and the entries of the two lists."""

from __future__ import annotations

import struct
from typing import Final

from ...errors import SourceError
from ...events import PUT, KvChange
from . import meta
from .job import Job, decode_job
from .key import decode_int, record_prefix

JOB_TABLE_ID: Final = (1 << 48) - 2
"""mysql.tidb_ddl_job: since TiDB v6.2."""

JOB_COLUMN: Final = 5
"""The id of its column job_meta, in every version so far."""

_FORMAT_2: Final = 128

_ROWS: Final = record_prefix(JOB_TABLE_ID)

JOB_KEYS: Final = (meta.PREFIX, _ROWS)
"""What the keys of job entries begin with, and no user's row does: for bytes.startswith."""


def read_job(change: KvChange) -> Job | None:
    """The job that a change puts; None for what isn't a job (a deletion, a list's bounds, other schema keys).

    Raises SourceError if the job can't be read.
    """
    key, value = change.key, change.value
    if change.op != PUT:
        return None
    if key.startswith(_ROWS):
        try:
            data = _column(value, JOB_COLUMN)
        except (ValueError, IndexError, struct.error) as error:
            raise SourceError(
                f"DDL job {decode_int(key, len(_ROWS))} at ts {change.commit_ts} can't be read: its row in"
                f" mysql.tidb_ddl_job: {error}"
            ) from error
        return None if data is None else decode_job(data, change.commit_ts)
    if key[:1] == meta.PREFIX:
        found = meta.decode_meta_key(key)
        if found.kind == "list" and found.name in (meta.DDL_JOBS, meta.DDL_INDEX_JOBS):
            return decode_job(value, change.commit_ts)
    return None


def _column(value: bytes, wanted: int) -> bytes | None:
    """The bytes of one column of a row value, in either row format; None if it is NULL or absent.

    Raises ValueError, IndexError or struct.error for what isn't a row value.
    """
    return _column_2(value, wanted) if value[0] == _FORMAT_2 else _column_1(value, wanted)


def _column_2(value: bytes, wanted: int) -> bytes | None:
    """Format 2: flags, counts of columns with and without value, their ids, where each value ends, values."""
    large = value[1] & 1
    filled, null = struct.unpack_from("<HH", value, 2)
    ids = struct.unpack_from(f"<{filled}{'I' if large else 'B'}", value, 6)
    if wanted not in ids:
        return None
    at = 6 + (filled + null) * (4 if large else 1)
    ends = (0, *struct.unpack_from(f"<{filled}{'I' if large else 'H'}", value, at))
    at += filled * (4 if large else 2)
    number = ids.index(wanted)
    return value[at + ends[number] : at + ends[number + 1]]


def _column_1(value: bytes, wanted: int) -> bytes | None:
    """Format 1: a datum with the column's id and one with its value, each behind a flag byte."""
    at = 0
    while at < len(value):
        column, at = _datum_1(value, at)
        data, at = _datum_1(value, at)
        if column == wanted:
            return data if isinstance(data, bytes) else None
    return None


def _datum_1(value: bytes, at: int) -> tuple[bytes | int | None, int]:
    """A datum as the job table has them, and where the next one begins."""
    flag, at = value[at], at + 1
    match flag:
        case 0:
            return None, at
        case 2:
            size, at = _varint(value, at)
            if at + size > len(value):
                raise ValueError(f"cut off after {len(value)} bytes")
            return value[at : at + size], at + size
        case 8:
            return _varint(value, at)
    raise ValueError(f"unexpected flag {flag} at {at - 1}")


def _varint(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = value[at]
        number |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
