"""The column `commit_time`: the time of `commit_ts`, to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from ...events import LOGICAL_BITS, Ts, compose_ts

COMMIT_TIME: Final = "commit_time"

_MICROSECONDS: Final = pa.timestamp("us", "UTC")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def with_commit_time(fields: t.StructType) -> t.StructType:
    """Return the columns of changes with `commit_time` after the first one, `commit_ts`."""
    first, *others = fields.fields
    return t.StructType([first, t.StructField(COMMIT_TIME, t.TimestampType(), False), *others])


def commit_times(commits: pa.Array) -> pa.Array:
    """Return the time of each commit ts."""
    milliseconds = pc.shift_right(commits, LOGICAL_BITS)
    return pc.multiply(milliseconds, 1000).cast(_MICROSECONDS)


def timed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch, of changes, with `commit_time` after its first column."""
    field = pa.field(COMMIT_TIME, _MICROSECONDS, nullable=False)
    return batch.add_column(1, field, commit_times(batch.column(0)))


def ts_range(time: datetime) -> tuple[Ts, Ts]:
    """Return the first ts of the millisecond of `time`, an aware one, and the first after it."""
    millisecond = (time - _EPOCH) // _MILLISECOND
    return compose_ts(millisecond), compose_ts(millisecond + 1)
