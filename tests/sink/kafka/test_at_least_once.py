"""Delivery at least once, to librdkafka's imitated brokers."""

from __future__ import annotations

import pytest

from tidemill.testing.sink_conformance import SinkConformance

from .replayed import KafkaPlace


class TestAtLeastOnce(SinkConformance):
    @pytest.fixture
    def place(self, mock_kafka):
        place = KafkaPlace(mock_kafka.brokers, delivery="at least once")
        mock_kafka.create_topic(place.topic)
        mock_kafka.create_topic(f"{place.topic}_checkpoint")
        return place
