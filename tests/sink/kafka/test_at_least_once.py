"""Delivery at least once, to librdkafka's imitated brokers."""

from __future__ import annotations

import pytest

from ..conformance import Conformance
from .replayed import KafkaPlace


class TestAtLeastOnce(Conformance):
    @pytest.fixture
    def place(self, mock_kafka):
        place = KafkaPlace(mock_kafka.brokers, delivery="at least once")
        mock_kafka.create_topic(place.topic)
        mock_kafka.create_topic(f"{place.topic}_checkpoint")
        return place
