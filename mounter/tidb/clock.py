"""The clock of the session that a DDL job ran for, by the columns that it adds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from ...codec.tidb.job import Job
from ...codec.tidb.table_info import PUBLIC, ColumnInfo, TableInfo
from ...events import physical_ms
from .columns import NotFollowed

_TIMESTAMP: Final = 7
_DATETIME: Final = 12
"""MySQL's numbers of the types."""

_NOW: Final = re.compile(r"(?:current_timestamp|now|localtimestamp|localtime)(?:\(\d*\))?", re.IGNORECASE)


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
