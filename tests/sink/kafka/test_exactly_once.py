"""Delivery exactly once, to a real broker."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from tidemill.errors import Retryable, SinkError
from tidemill.events import CreateTable
from tidemill.sink import open_sink
from tidemill.sink.kind import SinkContext
from tidemill.sink.registry import given_sink, survey_sink
from tidemill.testing.changes import (
    ORDERS,
    PAIRS,
    MemoryStore,
    alter,
    at,
    batch,
    insert,
    transaction,
)
from tidemill.testing.kafka import WRITER, messages
from tidemill.testing.private_server import PASSWORD
from tidemill.testing.progress import eventually
from tidemill.testing.sink_conformance import SinkConformance

from .replayed import KafkaPlace


@pytest.fixture
def place(kafka_server):
    return KafkaPlace(kafka_server.brokers)


class TestExactlyOnce(SinkConformance):
    @pytest.fixture
    def place(self, kafka_server):
        return KafkaPlace(kafka_server.brokers)

    @pytest.mark.parametrize(
        ("every", "when"),
        [
            (7, "before"),
            (7, "after"),
            pytest.param(1, "before", marks=pytest.mark.soak),
            pytest.param(1, "after", marks=pytest.mark.soak),
            pytest.param(3, "after", marks=pytest.mark.soak),
        ],
    )
    def test_dying_over_and_over_changes_nothing(self, place, every, when):
        SinkConformance.test_dying_over_and_over_changes_nothing(self, place, every, when)


def row(number):
    return batch(transaction(number, insert(ORDERS, number, "x")))


def test_a_second_copy_of_the_feed_fences_the_first(place):
    first, second = place.sink(), place.sink()
    first.open()
    first.write(row(1))
    first.flush()
    first.write(row(2))
    assert second.open() == at(1)
    with pytest.raises(SinkError, match="another copy of feed 'test' has begun to write there"):
        first.flush()
    second.write(row(2))
    assert second.flush() == at(2)
    first.close()
    second.close()
    assert [one["data"][0]["id"] for one in place.documents()] == ["1", "2"]


def test_a_checkpoint_is_not_read_while_a_transaction_of_another_writer_may_hide_it(kafka_server, place):
    home = f"{place.topic}_checkpoint"
    kafka_server.create_topic(home, cleanup_policy="compact")
    other = Producer({"bootstrap.servers": place.brokers, "transactional.id": home})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(home, b"x", key=b"y", partition=0)
    other.flush()
    sink = place.sink()
    with pytest.raises(Retryable, match="has an open transaction of another writer"):
        sink.open()
    other.abort_transaction(30)
    assert eventually(lambda: opened(sink))
    sink.close()


def opened(sink):
    try:
        return sink.open() is None
    except Retryable:
        return False


def test_rows_are_invisible_before_their_commit_and_gone_after_a_close(place):
    sink = place.sink()
    sink.open()
    sink.write(row(1))
    sink._outbox._producer.flush()
    assert len(messages(place.brokers, place.topic, committed=False)) == 1
    assert place.documents() == []
    sink.close()
    assert place.sink().open() is None
    assert place.documents() == []


def test_a_larger_row_than_the_encoding_may_write_is_refused_by_its_table(place):
    sink = place.sink()
    sink.open()
    with pytest.raises(SinkError, match=r"table shop\.orders.*max-message-bytes"):
        sink.write(batch(transaction(1, insert(ORDERS, 1, "x" * 1_100_000))))
    sink.close()


def test_a_larger_row_than_the_topic_allows_is_an_error(kafka_server, place):
    kafka_server.create_topic(place.topic, max_message_bytes="2000")
    sink = place.sink()
    sink.open()
    sink.write(batch(transaction(1, insert(ORDERS, 1, "x" * 5_000))))
    with pytest.raises(SinkError, match="a message is larger than its topic allows"):
        sink.flush()
    sink.close()


def test_a_topic_that_does_not_exist_and_may_not_be_created_is_an_error(place):
    with pytest.raises(SinkError, match="doesn't exist: create it, or set create_topics = true"):
        place.sink(create_topics=False).open()


def test_created_topics_have_the_wanted_partitions_and_settings(kafka_server, place):
    place.sink(partitions=5, topic_config={"retention.ms": "86400000"}).open()
    assert len(kafka_server.admin().list_topics(timeout=60).topics[place.topic].partitions) == 5


def test_a_setting_that_topics_do_not_have_is_an_error(place):
    with pytest.raises(SinkError, match=r"can't create topic .*retention\.hours"):
        place.sink(topic_config={"retention.hours": "1"}).open()


def test_checkpoints_are_not_kept_in_a_topic_that_deletes_them(kafka_server, place):
    kafka_server.create_topic(f"{place.topic}_checkpoint", cleanup_policy="delete")
    with pytest.raises(SinkError, match=r"has cleanup\.policy = delete, which would delete checkpoints"):
        place.sink().open()


def test_a_transaction_may_not_be_longer_than_the_brokers_allow(place):
    with pytest.raises(SinkError, match=r"can't begin transactions: .*[Tt]imeout"):
        place.sink(transaction_seconds=1_000_000).open()


def test_schema_changes_go_to_all_partitions_or_to_the_first(place):
    for number, ddl in enumerate(["all partitions", "partition 0"], 1):
        sink = place.sink(partitions=3, ddl=ddl, encoding={"enable-tidb-extension": True})
        sink.open()
        sink.write(batch(alter(number, PAIRS, "CREATE TABLE pairs (a INT)", CreateTable(PAIRS))))
        sink.flush()
        sink.close()
    kinds = [(one.partition(), b"CREATE" in one.value()) for one in messages(place.brokers, place.topic)]
    assert sorted(kind for kind in kinds if kind[1]) == [(0, True), (0, True), (1, True), (2, True)]


def test_watermarks_go_to_every_partition_of_topics_written_before_a_restart(kafka_server, place):
    url = f"kafka://{place.brokers}/{place.topic}_{{table}}"

    def sink():
        options = place.options | {"partitions": 3, "watermark_seconds": 0}
        return open_sink("copy", url, feed="test", store=MemoryStore(), options=options)

    first = sink()
    first.open()
    first.write(batch(transaction(1, insert(ORDERS, 1, "a"), insert(PAIRS, 1, "b", 2))))
    first.flush()
    first.close()
    second = sink()
    second.open()
    second.write(batch(transaction(2)))
    second.flush()
    second.close()
    for table in ("orders", "pairs"):
        all_ = messages(place.brokers, f"{place.topic}_{table}")
        found = [one.partition() for one in all_ if b"WATERMARK" in (one.value() or b"")]
        assert sorted(found) == [0, 0, 1, 1, 2, 2]


def test_a_rejected_login_names_the_user(kafka_server, place):
    url = f"kafka://{WRITER}:wrong@{kafka_server.sasl_brokers}/{place.topic}"
    with pytest.raises(SinkError, match=f"the login of '{WRITER}' was rejected.*check the URL"):
        open_sink("copy", url, feed="test", store=MemoryStore(), options=place.options).open()


def test_a_user_without_rights_is_told_what_to_grant(kafka_server, place):
    url = f"kafka://{WRITER}:{PASSWORD}@{kafka_server.sasl_brokers}/{place.topic}"
    sink = open_sink("copy", url, feed="test", store=MemoryStore(), options=place.options)
    with pytest.raises(SinkError, match=f"no right to create topic .*grant it to user '{WRITER}'"):
        sink.open()
    sink.close()


def test_a_user_with_rights_writes(kafka_server, place):
    allowed = [
        (ResourceType.TOPIC, place.topic),
        (ResourceType.TOPIC, f"{place.topic}_checkpoint"),
        (ResourceType.TRANSACTIONAL_ID, "tidemill.test.copy"),
        (ResourceType.GROUP, "tidemill"),
    ]
    bindings = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{WRITER}",
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        for kind, name in allowed
    ]
    admin = kafka_server.admin()
    for future in admin.create_acls(bindings).values():
        future.result()
    url = f"kafka://{WRITER}:{PASSWORD}@{kafka_server.sasl_brokers}/{place.topic}"
    sink = open_sink("copy", url, feed="test", store=MemoryStore(), options=place.options)
    sink.open()
    sink.write(row(1))
    assert sink.flush() == at(1)
    sink.close()


def over_tls(server, place, **options):
    tls = server.client_tls
    if tls is None:
        pytest.skip("SKIPPED WITHOUT THE openssl COMMAND: nothing of TLS is tested")
    files = {"tls_ca": tls.ca_path, "tls_certificate": tls.cert_path, "tls_key": tls.key_path}
    given = {"tls": True, **{name: str(path) for name, path in files.items()}, **options}
    url = f"kafka://{server.tls_brokers}/{place.topic}"
    return open_sink("copy", url, feed="test", store=MemoryStore(), options=place.options | given)


def test_a_sink_writes_over_tls_with_a_certificate(kafka_server, place):
    sink = over_tls(kafka_server, place)
    sink.open()
    sink.write(row(1))
    assert sink.flush() == at(1)
    sink.close()


def test_a_certificate_of_another_authority_is_an_error(kafka_server, place):
    with pytest.raises(SinkError, match=r"certificate.*check tls_ca"):
        over_tls(kafka_server, place, tls_ca="", timeout_seconds=10).open()


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_messages_may_be_compressed(place, compression):
    sink = place.sink(compression=compression)
    sink.open()
    sink.write(batch(transaction(1, *[insert(ORDERS, number, "x" * 100) for number in range(100)])))
    sink.flush()
    sink.close()
    assert len(place.documents()) == 100


def test_an_address_without_brokers_is_retried(place):
    url = "kafka://127.0.0.1:1/rows"
    sink = open_sink("copy", url, feed="test", store=MemoryStore(), options={"timeout_seconds": 1})
    with pytest.raises(Retryable, match="no answer in 1 s to look up topic"):
        sink.open()


def survey(place, **options):
    given = given_sink("copy", f"kafka://{place.brokers}/{place.topic}", place.options | options)
    found = survey_sink(given, SinkContext(name="copy", feed="test", store=MemoryStore()))
    return [(finding.level, finding.text) for finding in found]


def test_a_check_says_which_topics_are_there_and_where_the_feed_begins(place):
    assert survey(place, create_topics=False)[0] == (
        "error",
        f"topic {place.topic!r} doesn't exist: create it, or set create_topics = true",
    )
    assert survey(place) == [
        ("ok", f"topic {place.topic!r} will be created"),
        ("ok", f"topic '{place.topic}_checkpoint' will be created"),
        ("ok", "has no position yet"),
    ]
    sink = place.sink()
    sink.open()
    sink.write(row(1))
    sink.flush()
    sink.close()
    assert survey(place)[-1] == ("ok", "has position log:1")
