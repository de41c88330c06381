"""URLs and options of Kafka as a target."""

from __future__ import annotations

import sys

import pytest

from tidemill.errors import ConfigError, SinkError
from tidemill.sink import open_sink
from tidemill.sink.kafka.address import parsed
from tidemill.sink.kafka.options import KafkaOptions
from tidemill.testing.changes import MemoryStore


def opened(url="kafka://b/rows", **options):
    return open_sink("copy", url, feed="test", store=MemoryStore(), options=options)


def test_a_url_has_brokers_a_topic_a_login_and_options():
    address, options = parsed(
        "kafka://ann:p%40ss@b1,b2:9093/{schema}_{table}?format=maxwell&partition=columns&columns=a,b&partitions=3"
        "&create_topics=false",
        KafkaOptions(),
    )
    assert address.brokers == "b1:9092,b2:9093"
    assert (address.user, address.password) == ("ann", "p@ss")
    assert address.topic.topic("shop", "orders") == "shop_orders"
    assert (options.format, options.partition, options.columns) == ("maxwell", "columns", ("a", "b"))
    assert (options.partitions, options.create_topics) == (3, False)


def test_two_urls_of_one_cluster_and_topic_are_one_target():
    assert opened("kafka://b1,b2/t").target == opened("kafka://u:p@b2:9092,b1/t?partitions=3").target


def test_characters_that_topics_can_not_have_become_underscores():
    address, _ = parsed("kafka://b/{schema}.{table}", KafkaOptions())
    assert address.topic.topic("shöp", "my orders") == "sh_p.my_orders"


@pytest.mark.parametrize(
    ("url", "options", "sentence"),
    [
        ("kafka:///rows", {}, "the URL names no broker; for instance kafka://broker:9092/"),
        ("kafka://b", {}, "the URL names no topic"),
        ("kafka://b/{shema}", {}, r"topic = '\{shema\}': no name \{shema\}; accepted: \{schema\}, \{table\}"),
        ("kafka://b/{table:>9}", {}, "accepted: {schema}, {table}"),
        ("kafka://b/{table", {}, "topic = '{table'"),
        ("kafka://b/a*b", {}, "a topic's name has letters, digits"),
        ("kafka://b:x/rows", {}, "'b:x' is no broker"),
        (
            "kafka://b/rows?partion=key",
            {},
            "partion in the URL: no such option; did you mean 'partition'",
        ),
        ("kafka://b/rows?partition=kee", {}, "partition = 'kee' in the URL: 'kee' is none of 'table', 'key'"),
        ("kafka://b/rows?partitions=x", {}, "partitions = 'x' in the URL"),
        ("kafka://b/rows?partitions=3", {"partitions": 4}, "partitions is given twice"),
        ("kafka://b/rows", {"format": "thrift"}, "format = 'thrift': 'thrift' is none of 'canal-json'"),
        (
            "kafka://b/rows",
            {"encoding": {"colour": 1}},
            "encoding.colour: no such option of canal-json",
        ),
        ("kafka://b/rows", {"delivery": "twice"}, "'exactly once'"),
        ("kafka://b/rows", {"partition": "columns"}, 'partition = "columns" and columns go together'),
        ("kafka://b/rows", {"columns": ["a"]}, 'partition = "columns" and columns go together'),
        (
            "kafka://b/rows",
            {"dispatch": [{"tables": []}]},
            r"dispatch 1\.tables: no pattern given; name at least one",
        ),
        ("kafka://b/rows", {"dispatch": [{"tables": ["a.*"], "topic": "{db}"}]}, r"no name \{db\}"),
        ("kafka://b/rows", {"partition_hash": "a.b:$ts$"}, r"no word '\$ts\$'; accepted: \$pk\$, or columns"),
        ("kafka://b/rows", {"partition_hash": "a.b:"}, r"'a\.b:': name columns after the colon, or \$pk\$"),
        ("kafka://b/rows", {"partition_hash": ":id"}, "':id' names no table"),
        ("kafka://b/rows", {"partition_hash": "a.b:id,,c"}, "an entry is empty"),
        ("kafka://b/rows", {"partition_hash": "a.(b:id"}, "'a.\\(b' is not a regular expression"),
        (
            "kafka://b/rows",
            {"partition_hash": "a", "partition": "key"},
            "partition_hash and partition: give one",
        ),
        (
            "kafka://b/rows",
            {"dynamic_topic": "a", "dispatch": [{"tables": ["*.*"]}]},
            "dynamic_topic and dispatch",
        ),
        ("kafka://b/rows", {"dynamic_topic": "a:"}, "'a:': write a name or an expression"),
        ("kafka://b/rows", {"dynamic_topic": "a*b:c"}, "dynamic_topic = 'a\\*b': a topic's name has"),
        ("kafka://b/rows", {"dynamic_topic": "{table}:c"}, "names in braces are for the URL and dispatch"),
        ("kafka://b/rows", {"database_hash": False}, "database_hash goes with partition_hash"),
        (
            "kafka://b/rows",
            {"dynamic_topic": "a", "format": "avro"},
            "avro names .* and dynamic_topic has topics",
        ),
        ("kafka://b/rows", {"headers": {"x": "{colour}"}}, r"headers.x = .*no name \{colour\}; accepted"),
        ("kafka://b/rows", {"format": "open-protocol", "headers": {"x": "{op}"}}, "has several rows"),
        ("kafka://b/rows", {"checkpoint_topic": "{table}"}, "the name of one topic"),
        ("kafka://b/rows", {"tls_ca": "/ca.pem"}, "need tls = true"),
        ("kafka://b/rows", {"tls": True, "tls_key": "/k"}, "tls_certificate and tls_key go together"),
        ("kafka://b/rows", {"client": {"acks": "1"}}, "client.acks can't be given: the sink decides it"),
        ("kafka://b/rows", {"timeout_seconds": 0}, "timeout_seconds = 0: expected `float` >= 1"),
        ("kafka://b/rows", {"buffer_bytes": 5}, "buffer_bytes = 5: expected `int` >= 1048576"),
    ],
)
def test_a_wrong_url_or_option_is_explained(url, options, sentence):
    with pytest.raises(ConfigError, match=sentence) as caught:
        opened(url, **options)
    assert str(caught.value).startswith("sink copy: ")


def test_an_unknown_setting_of_the_client_is_an_error(mock_kafka):
    mock_kafka.create_topic("copy")
    sink = opened(f"kafka://{mock_kafka.brokers}/rows", client={"colour": "blue"}, checkpoint_topic="copy")
    with pytest.raises(SinkError, match=r"can't connect: .*colour"):
        sink.open()


def test_without_the_driver_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tidemill.sink.kafka.")]:
        if name.rpartition(".")[2] not in ("kinds", "options", "address", "template"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ConfigError, match=r"Kafka needs: pip install 'tidemill\[kafka\]'"):
        opened()
