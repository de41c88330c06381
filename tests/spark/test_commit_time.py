"""The column commit_time."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from tidemill.events import compose_ts
from tidemill.spark.envelope import ENVELOPE, EnvelopeEncoder
from tidemill.spark.option_values import timestamp
from tidemill.spark.read.commit_time import commit_times, timed
from tidemill.testing.changes import ORDERS, insert, transaction

NOON = datetime(2026, 11, 21, 12, 0, 0, 7000, UTC)


def test_it_is_the_time_of_the_ts_to_the_millisecond() -> None:
    noon = timestamp(NOON.isoformat())
    found = commit_times(pa.array([noon, noon + 5, compose_ts(0)]))
    assert found.type == pa.timestamp("us", "UTC")
    assert found.to_pylist() == [NOON, NOON, datetime(1970, 1, 1, tzinfo=UTC)]


def test_it_stands_beside_the_ts() -> None:
    batch = timed(EnvelopeEncoder().encode([transaction(compose_ts(1000), insert(ORDERS, 1, "a"))]))
    assert batch.schema.names == ["commit_ts", "commit_time", *ENVELOPE.names[1:]]
    assert batch["commit_time"][0].as_py() == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
