"""Watermarks, to librdkafka's imitated brokers."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from tidemill.events import CREATED, Batch, TablePosition
from tidemill.testing.changes import ORDERS, at, insert, transaction
from tidemill.testing.kafka import messages

from .replayed import KafkaPlace


@pytest.fixture
def place(mock_kafka):
    place = KafkaPlace(mock_kafka.brokers, partitions=2, watermark_seconds=0)
    mock_kafka.create_topic(place.topic, 2)
    mock_kafka.create_topic(f"{place.topic}_checkpoint")
    return place


def watermarks(place):
    found = [
        (one.partition(), json.loads(one.value() or b"")) for one in messages(place.brokers, place.topic)
    ]
    return sorted((ts, place) for place, one in found if (ts := one["_tidb"].get("watermarkTs")))


def written(place, *checkpoints):
    sink = place.sink()
    sink.open()
    for checkpoint in checkpoints:
        sink.write(Batch([transaction(checkpoint.ts, insert(ORDERS, 1, "x"))], checkpoint))
        sink.flush()
    sink.flush()
    sink.close()
    return watermarks(place)


def test_each_commit_has_a_watermark_in_every_partition(place):
    assert written(place, at(1), at(2)) == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_while_tables_are_loaded_there_is_none(place):
    assert written(place, at(1, loading={"shop.orders": CREATED}), at(2)) == [(2, 0), (2, 1)]


def test_a_table_that_lags_behind_holds_them_back(place):
    lagging = replace(at(9), tables={"shop.orders": TablePosition(4, "log:4")})
    assert written(place, lagging) == [(4, 0), (4, 1)]
