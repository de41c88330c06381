"""Encodings that need more of a sink than one message a row."""

from __future__ import annotations

import json

import pytest

from tidemill.chain.selection.tables import TablePatterns
from tidemill.errors import ConfigError
from tidemill.sink.encoding.encodings import make_encoder
from tidemill.sink.kafka.address import parsed
from tidemill.sink.kafka.kinds import _encoding
from tidemill.sink.kafka.messages import Messages
from tidemill.sink.kafka.options import Dispatch, KafkaOptions
from tidemill.sink.kafka.route import Destinations
from tidemill.testing.changes import ORDERS, insert, transaction, update


class TwoPartitions:
    """Topics that all have two partitions."""

    def partitions(self, topic):
        return 2


def messages(url, encoding, partition="key", **given):
    address, options = parsed(url, KafkaOptions(partition=partition, format=encoding, encoding=given))
    found = {key: value for key, value in _encoding(address.topic, options).items() if key != "topic"}
    rules = Destinations(address.topic, options)
    return Messages(
        lambda: make_encoder(encoding, found, lambda: 0), rules, TwoPartitions(), ddl_to_all=True, headers={}
    )


def test_a_definition_goes_to_every_partition_before_the_rows():
    made = messages("kafka://b/rows", "simple", send_bootstrap_in_msg_count=1000)
    rows = [insert(ORDERS, number, "") for number in range(20)]
    found = made.of([transaction(1, *rows)])
    kinds = {place: [json.loads(one.value)["type"] for one in records] for place, records in found.items()}
    assert set(kinds) == {("rows", 0), ("rows", 1)}
    assert all(one == ["BOOTSTRAP", *["INSERT"] * (len(one) - 1)] for one in kinds.values())
    assert sum(map(len, kinds.values())) == 22


def test_packets_of_canal_have_rows_of_one_partition():
    rows = [insert(ORDERS, number, "") for number in range(20)]
    found = messages("kafka://b/rows", "canal-protobuf").of([transaction(1, *rows)])
    assert {place: len(records) for place, records in found.items()} == {("rows", 0): 1, ("rows", 1): 1}


@pytest.mark.parametrize("partition", ["table", "ts", "key"])
def test_messages_that_are_found_by_their_key_have_no_update_of_it(partition):
    made = messages("kafka://b/rows", "debezium", partition=partition)
    stays, moves = update(ORDERS, (1, "a"), (1, "b")), update(ORDERS, (1, "b"), (2, "b"))
    records = made.of([transaction(2, stays, moves)])
    found = [json.loads(one.value)["payload"] for at in sorted(records) for one in records[at]]
    keys = [json.loads(one.key)["payload"]["id"] for at in sorted(records) for one in records[at]]
    assert sorted(zip([one["op"] for one in found], keys, strict=True)) == [("c", 2), ("d", 1), ("u", 1)]
    (canal,) = messages("kafka://b/rows", "canal-json", partition="ts").of([transaction(2, moves)]).values()
    assert json.loads(canal[0].value)["type"] == "UPDATE"


def test_schemas_are_registered_under_the_names_of_topics():
    address, options = parsed("kafka://b/cdc.{table}", KafkaOptions(format="avro"))
    assert _encoding(address.topic, options)["topic"] == "cdc.{table}"
    given = KafkaOptions(format="avro", encoding={"topic": "all"})
    assert _encoding(address.topic, given)["topic"] == "all"


def test_definitions_of_simple_are_repeated_unless_the_options_say_otherwise():
    address, options = parsed("kafka://b/rows", KafkaOptions(format="simple"))
    assert _encoding(address.topic, options)["send_bootstrap_in_msg_count"] == 10_000
    given = KafkaOptions(format="simple", encoding={"send-bootstrap-in-msg-count": 0})
    assert _encoding(address.topic, given)["send_bootstrap_in_msg_count"] == 0


def test_schemas_are_refused_where_topics_follow_several_rules():
    other = (Dispatch(tables=TablePatterns.parse(("a.*",)), topic="{schema}"),)
    address, options = parsed("kafka://b/rows", KafkaOptions(format="avro", dispatch=other))
    with pytest.raises(ConfigError, match=r"encoding\.topic: avro names its schemas by one rule"):
        _encoding(address.topic, options)
