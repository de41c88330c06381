from __future__ import annotations

import pytest

from tidemill.sink.kafka.topics import Topics
from tidemill.testing.kafka_mock import MockKafka


@pytest.fixture
def mock_kafka(mock_kafka: MockKafka, monkeypatch: pytest.MonkeyPatch) -> MockKafka:
    """Imitated brokers, which don't answer about settings of topics and can't create any by request."""
    monkeypatch.setattr(Topics, "policy_problem", lambda _: "")
    return mock_kafka
