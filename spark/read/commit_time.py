"""The column `commit_time`: the time of `commit_ts`, to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as t

from ...events import LOGICAL_BITS, Ts, compose_ts

if TYPE_CHECKING:
    import pyarrow as pa

COMMIT_TIME: Final = "commit_time"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def with_commit_time(fields: t.StructType) -> t.StructType:
    """Return the columns of changes with `commit_time` after the first one, `commit_ts`."""
    first, *others = fields.fields
    return t.StructType([first, t.StructField(COMMIT_TIME, t.TimestampType(), False), *others])


def commit_times(commits: pa.Array) -> pa.Array:
    """Return the time of each commit ts."""
    from ...codec.arrow_arrays import int64_array, int64_values

    return int64_array((int64_values(commits) >> LOGICAL_BITS) * 1000, kind=_field().type)


def _field() -> pa.Field:
    import pyarrow as pa  # here, as the type of a table needs no Arrow

    return pa.field(COMMIT_TIME, pa.timestamp("us", "UTC"), nullable=False)


def timed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch, of changes, with `commit_time` after its first column."""
    return batch.add_column(1, _field(), commit_times(batch.column(0)))


def ts_range(time: datetime) -> tuple[Ts, Ts]:
    """Return the first ts of the millisecond of `time`, an aware one, and the first after it."""
    millisecond = (time - _EPOCH) // _MILLISECOND
    return compose_ts(millisecond), compose_ts(millisecond + 1)
