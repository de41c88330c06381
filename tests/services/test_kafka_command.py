"""The command line with Kafka as a sink: what it checks, shows and refuses."""

from __future__ import annotations

import json

import pytest

from tidemill.testing.feeds import CopiedTable
from tidemill.testing.kafka import WRITER, messages


@pytest.fixture
def place(mariadb, database, tmp_path):
    return CopiedTable(tmp_path, mariadb, database)


def ids(broker, topic):
    documents = [json.loads(one.value() or b"") for one in messages(broker.brokers, topic)]
    return sorted(int(one["data"][0]["id"]) for one in documents if not one["isDdl"])


def test_a_feed_is_checked_run_and_shown(place, kafka_server):
    topic = f"{place.schema}_item"
    place.configure(sinks=[kafka_server.url(f"{{schema}}_{{table}}?checkpoint_topic={place.schema}")])
    checked = place.call("check", str(place.config))
    assert f"ok      sink a: topic '{place.schema}' will be created\n" in checked.out
    assert "ok      sink a: begins with a snapshot\n" in checked.out
    assert place.run().status == 0
    place.insert(4, 5)
    assert place.run().status == 0
    assert ids(kafka_server, topic) == [1, 2, 3, 4, 5]
    assert "sink a: goes on from " in place.call("check", str(place.config)).out
    status = place.status()
    assert status is not None
    assert status.sinks[0].target == f"kafka:{kafka_server.brokers}/{{schema}}_{{table}}"


def test_a_wrong_login_is_a_sentence(place, kafka_server):
    place.configure(sinks=[f"kafka://{WRITER}:wrong@{kafka_server.sasl_brokers}/rows"])
    sentence = place.run().sentence
    assert f"the login of '{WRITER}' was rejected" in sentence
    assert "wrong" not in sentence


def test_brokers_that_hang_are_a_warning_and_explained(place, private_kafka):
    broker = private_kafka.start()
    place.configure(sinks=[broker.url("rows?timeout_seconds=5&partitions=1")])
    with place.start() as running:
        running.until(lambda status: status.state == "normal" and not status.sinks[0].loading)
        broker.pause()
        place.insert(4)
        running.until(lambda status: status.state == "warning")
        explained = place.call("explain", str(place.config)).out
        assert "sink a" in explained
        assert "Kafka at" in explained
        broker.resume()
        running.until(lambda status: status.state == "normal" and status.rows == 4)
    assert ids(broker, "rows") == [1, 2, 3, 4]
