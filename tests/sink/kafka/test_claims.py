"""Claim checks in Kafka: what a reader finds, and a store that is missing, slow or breaks off."""

from __future__ import annotations

import pytest

from tidemill.errors import ConfigError, Retryable, SinkError
from tidemill.sink import open_sink
from tidemill.sink.kind import SinkContext
from tidemill.sink.registry import given_sink, survey_sink
from tidemill.testing.changes import ORDERS, MemoryStore, alter, at, batch, insert, transaction, update
from tidemill.testing.claim_reader import whole
from tidemill.testing.kafka import messages
from tidemill.testing.progress import eventually
from tidemill.testing.s3 import Broken

from .replayed import KafkaPlace

DELIVERIES = ["exactly once", "at least once"]


def encoding(uri, **options):
    return {
        "enable-tidb-extension": True,
        "max-message-bytes": 600,
        "large-message-handle-option": "claim-check",
        "claim-check-storage-uri": uri,
        **options,
    }


def made(cluster, uri, delivery="exactly once", **options):
    place = KafkaPlace(cluster.brokers, delivery=delivery, encoding=encoding(uri, **options))
    cluster.create_topic(place.topic)
    cluster.create_topic(f"{place.topic}_checkpoint")
    return place


def large(number, letter="x"):
    return insert(ORDERS, number, letter * 1000)


def notes(place, read):
    """Return the rows after all changes, as a reader of claim checks finds them."""
    found = [whole(document, read)["data"][0] for document in place.documents()]
    return [(int(row["id"]), row["note"]) for row in found]


def kept(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("scheme", ["directory", "file"])
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_large_rows_are_in_a_directory_and_small_ones_in_kafka(mock_kafka, tmp_path, delivery, scheme):
    claims = tmp_path / "claims of it"
    place = made(mock_kafka, f"{scheme}://{tmp_path}/claims%20of%20it", delivery)
    sink = place.sink()
    sink.open()
    after = (3, "y" * 900)
    sink.write(batch(transaction(1, large(1), insert(ORDERS, 2, "small"), update(ORDERS, (3, "y"), after))))
    assert sink.flush() == at(1)
    sink.close()
    assert notes(place, lambda name: (claims / name).read_bytes()) == [
        (1, "x" * 1000), (2, "small"), after
    ]  # fmt: skip
    assert len(kept(claims)) == 2
    location = place.documents()[0]["_tidb"]["claimCheckLocation"]
    assert location.startswith(f"file://{tmp_path}/claims%20of%20it/00000000000000000000-")


def test_large_rows_are_in_a_bucket(mock_kafka, s3_server, bucket):
    options = {"endpoint": s3_server.endpoint}
    place = made(mock_kafka, f"s3://{bucket}/large/rows", **{"claim-check-storage-options": options})
    sink = place.sink()
    sink.open()
    sink.write(batch(transaction(1, *[large(number) for number in range(20)])))
    assert sink.flush() == at(1)
    sink.close()
    objects = s3_server.objects(f"{bucket}/large/rows")
    assert notes(place, objects.__getitem__) == [(number, "x" * 1000) for number in range(20)]
    assert len(objects) == 20
    location = place.documents()[0]["_tidb"]["claimCheckLocation"]
    assert location.startswith(f"s3://{bucket}/large/rows/000")


def test_a_replay_writes_the_same_objects(mock_kafka, tmp_path):
    rows = batch(transaction(1, large(1), large(2)))
    found = []
    for _ in range(2):  # two feeds, so that nothing is skipped
        place = made(mock_kafka, f"directory://{tmp_path}/claims")
        sink = place.sink()
        sink.open()
        sink.write(rows)
        sink.flush()
        sink.close()
        found.append(kept(tmp_path / "claims").keys())
    assert found[0] == found[1]
    assert len(found[0]) == 2


class CutOff:
    """A fault: the first requests that write an object get no answer, until `heal`."""

    def __init__(self):
        self.is_over = False
        self.written = 0

    def __call__(self, environ, handle):
        if environ["REQUEST_METHOD"] == "PUT" and not self.is_over:
            self.written += 1
            if self.written % 2:
                handle()  # it arrived, the answer doesn't
            raise Broken


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_while_the_store_breaks_off_nothing_is_sent_and_the_batch_comes_again(
    mock_kafka, s3_server, bucket, delivery
):
    uri = f"s3://{bucket}/claims?endpoint={s3_server.endpoint}&timeout_seconds=5"
    place = made(mock_kafka, uri, delivery)
    sink = place.sink()
    sink.open()
    statement = alter(2, ORDERS, "ALTER TABLE orders COMMENT 'x'")
    rows = batch(
        transaction(1, insert(ORDERS, 1, "a"), insert(ORDERS, 2, "b")), statement, transaction(3, large(3))
    )
    fault = s3_server.fault = CutOff()
    try:
        with pytest.raises(Retryable, match="doesn't answer as it should"):
            sink.write(rows)
        assert place.documents() == []
        fault.is_over = True

        def written():
            try:
                sink.write(rows)
            except Retryable:
                return False
            return True

        assert eventually(written)
        assert sink.flush() == at(3)
    finally:
        s3_server.fault = None
        sink.close()
    found = [whole(one, s3_server.objects(f"{bucket}/claims").__getitem__) for one in place.documents()]
    assert [one["data"] and one["data"][0]["id"] for one in found] == ["1", "2", None, "3"]
    headers = [dict(one.headers() or ()).get("at") for one in messages(place.brokers, place.topic)]
    assert headers[:4] == [b"1/0", b"1/1", None, b"3/0"]


def test_a_store_that_is_slow_is_named_as_what_the_sink_waits_for(mock_kafka, s3_server, bucket):
    place = made(mock_kafka, f"s3://{bucket}/claims?endpoint={s3_server.endpoint}")
    sink = place.sink()
    sink.open()
    waits = []

    def fault(environ, handle):
        waits.extend(sink.waits())

    s3_server.fault = fault
    try:
        sink.write(batch(transaction(1, large(1))))
    finally:
        s3_server.fault = None
        sink.close()
    assert [(wait.stage, wait.kind) for wait in waits[:1]] == [("sink copy", "answer")]
    assert waits[0].on == f"s3:{s3_server.endpoint}/{bucket}/claims"
    assert sink.waits() == []


def test_a_store_that_is_missing_stops_the_feed_at_its_start(mock_kafka, s3_server, tmp_path):
    with pytest.raises(SinkError, match="there is no bucket 'nowhere': create it, or correct the URL"):
        made(mock_kafka, f"s3://nowhere/claims?endpoint={s3_server.endpoint}").sink().open()
    with pytest.raises(SinkError, match=r"can't write .*/gone/claims: No such file or directory"):
        made(mock_kafka, f"directory://{tmp_path}/gone/claims").sink().open()


def test_a_directory_that_cant_be_written_stops_the_feed(mock_kafka, tmp_path):
    place = made(mock_kafka, f"directory://{tmp_path}/claims")
    sink = place.sink()
    sink.open()
    (tmp_path / "claims").rmdir()
    (tmp_path / "claims").write_text("")
    with pytest.raises(SinkError, match=f"can't write {tmp_path}/claims: Not a directory"):
        sink.write(batch(transaction(1, large(1))))
    sink.close()


def test_check_looks_at_the_store(s3_server, bucket, tmp_path):
    def found(uri):
        options = {"encoding": encoding(uri), "timeout_seconds": 1}
        given = given_sink("copy", "kafka://127.0.0.1:1/rows", options)
        context = SinkContext(name="copy", feed="f", store=MemoryStore())
        return next(iter(survey_sink(given, context)))

    endpoint = f"endpoint={s3_server.endpoint}"
    assert found(f"s3://{bucket}/claims?{endpoint}").text == f"bucket {bucket!r} for claim checks is there"
    assert found(f"directory://{tmp_path}/claims").text == f"{tmp_path}/claims will be made"
    assert not (tmp_path / "claims").exists()
    missing = found(f"directory://{tmp_path}/gone/claims")
    assert (missing.level, "there is no directory" in missing.text) == ("error", True)


@pytest.mark.parametrize(
    ("uri", "options", "words"),
    [
        ("gs://bucket/p", {}, "= 'gs://bucket/p': accepted are s3://bucket/prefix, directory:///var/rows"),
        ("s3://", {}, "the URL names no bucket"),
        ("s3://key:secret@b/p", {}, "give access_key and secret_key as options"),
        ("s3://b?access_key=x", {}, "access_key in the URL: no such option"),
        ("s3://b", {"access-key": "x"}, "access_key and secret_key go together"),
        (
            "s3://b",
            {"format": "csv"},
            "storage-options.format: no such key (accepted: access_key",
        ),
        ("directory:///", {}, "names no directory"),
        ("directory:///var/x", {"endpoint": "http://x"}, "only an object store has options"),
        ("directory:///var/x?endpoint=x", {}, "endpoint in the URL: no such option (accepted: none)"),
    ],
)
def test_options_of_the_store_that_are_wrong_are_named(uri, options, words):
    given = {"encoding": encoding(uri, **{"claim-check-storage-options": options})}
    with pytest.raises(ConfigError) as refused:
        open_sink("copy", "kafka://b:9092/rows", feed="f", store=MemoryStore(), options=given)
    assert words in str(refused.value)
    assert str(refused.value).startswith("sink copy: ")
