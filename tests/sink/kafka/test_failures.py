"""Brokers that fail, answer with errors or move leaders, imitated by librdkafka's own."""

from __future__ import annotations

from threading import Event

import pytest
from confluent_kafka import KafkaError

from tidemill.errors import Retryable, SinkError
from tidemill.testing.changes import ORDERS, at, batch, delete, insert, transaction
from tidemill.testing.kafka import messages
from tidemill.testing.kafka_mock import END_TRANSACTION, INIT_PRODUCER_ID, PRODUCE
from tidemill.testing.progress import eventually

from .replayed import KafkaPlace

DELIVERIES = ["exactly once", "at least once"]


@pytest.fixture(params=DELIVERIES)
def place(request, mock_kafka):
    return made(mock_kafka, request.param)


@pytest.fixture
def exact(mock_kafka):
    return made(mock_kafka, "exactly once")


def made(cluster, delivery):
    place = KafkaPlace(cluster.brokers, delivery=delivery, commit_seconds=0)
    cluster.create_topic(place.topic, replicas=2)
    cluster.create_topic(f"{place.topic}_checkpoint", replicas=2)
    return place


def row(number):
    return batch(transaction(number, insert(ORDERS, number, "x")))


def opened(sink):
    """Open, as an actor does it again after Retryable; False if that has to be repeated."""
    try:
        sink.open()
    except Retryable:
        return False
    return True


def written(sink, *rows):
    """Write and flush, as an actor does it again after Retryable; None if that has to be repeated."""
    try:
        for number in rows:
            sink.write(row(number))
        return sink.flush()
    except Retryable:
        return None


def numbers(place):
    return [int(document["data"][0]["id"]) for document in place.documents()]


def test_while_no_broker_answers_a_sink_is_retried_and_then_goes_on(place, mock_kafka):
    sink = place.sink(timeout_seconds=5)
    assert eventually(lambda: opened(sink))
    assert eventually(lambda: written(sink, 1)) == at(1)
    mock_kafka.stop_brokers([1, 2])
    sink.write(row(2))
    with pytest.raises(Retryable, match="no answer in 5 s"):
        sink.flush()
    mock_kafka.start_brokers([1, 2])
    assert eventually(lambda: written(sink, 2, 3)) == at(3)
    sink.close()
    assert set(numbers(place)) == {1, 2, 3}
    assert place.sink().open() == at(3)


def test_at_least_once_an_outage_neither_repeats_nor_reorders_messages(mock_kafka):
    place = made(mock_kafka, "at least once")
    sink = place.sink(timeout_seconds=5)
    assert eventually(lambda: opened(sink))
    assert eventually(lambda: written(sink, 1)) == at(1)
    mock_kafka.stop_brokers([1, 2])
    for number in (2, 3):
        sink.write(row(number))
    with pytest.raises(Retryable):
        sink.flush()
    mock_kafka.start_brokers([1, 2])
    assert eventually(lambda: written(sink, 2, 3, 4)) == at(4)
    sink.close()
    assert numbers(place) == [1, 2, 3, 4]


def test_a_leader_may_move_between_messages(place, mock_kafka):
    sink = place.sink()
    sink.open()
    for number in range(1, 9):
        mock_kafka.move_leader(place.topic, 0, 1 + number % 2)
        sink.write(row(number))
        sink.flush()
    sink.close()
    assert numbers(place) == list(range(1, 9))


@pytest.mark.parametrize("error", ["NOT_LEADER_FOR_PARTITION", "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS"])
def test_a_rejected_produce_request_is_repeated_in_order(place, mock_kafka, error):
    # One request: imitated brokers take a later one after a rejected one, which real brokers don't.
    sink = place.sink(client={"linger.ms": "10000"})
    sink.open()
    mock_kafka.answer(PRODUCE, *[getattr(KafkaError, error)] * 2)
    for number in range(1, 6):
        sink.write(row(number))
    assert sink.flush() == at(5)
    sink.close()
    assert numbers(place) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("MSG_SIZE_TOO_LARGE", "larger than its topic allows.*max.message.bytes"),
        ("TOPIC_AUTHORIZATION_FAILED", "no right to .*grant it"),
        ("INVALID_RECORD", "can't "),
    ],
)
def test_a_message_that_can_never_be_written_stops_the_feed(place, mock_kafka, error, sentence):
    sink = place.sink()
    sink.open()
    mock_kafka.answer(PRODUCE, getattr(KafkaError, error))
    sink.write(row(1))
    with pytest.raises(SinkError, match=sentence):
        sink.flush()
    sink.close()


@pytest.mark.parametrize("error", ["INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"])
def test_a_fenced_writer_says_that_another_copy_runs(exact, mock_kafka, error):
    sink = exact.sink()
    sink.open()
    sink.write(row(1))
    mock_kafka.answer(END_TRANSACTION, getattr(KafkaError, error))
    with pytest.raises(SinkError, match="another copy of feed 'test'"):
        sink.flush()
    sink.close()


def test_a_transaction_that_took_too_long_says_so(exact, mock_kafka):
    sink = exact.sink(transaction_seconds=10)
    sink.open()
    sink.write(row(1))
    sink._outbox._began -= 11
    mock_kafka.answer(END_TRANSACTION, KafkaError.INVALID_PRODUCER_EPOCH)
    with pytest.raises(SinkError, match="took longer than transaction_seconds = 10: raise it"):
        sink.flush()
    sink.close()


def test_a_full_buffer_keeps_the_order_and_loses_nothing(place):
    sink = place.sink(buffer_bytes=1 << 20)
    sink.open()
    for first in range(0, 2_000, 1_000):  # an imitated partition keeps 5 MB
        rows = [insert(ORDERS, number, "x" * 2_000) for number in range(first, first + 1_000)]
        sink.write(batch(transaction(1 + first, *rows)))
    assert sink.flush() == at(1_001)
    sink.close()
    assert numbers(place) == list(range(2_000))


def test_while_a_commit_goes_on_further_batches_are_taken_in_order(place, monkeypatch):
    sink = place.sink()
    sink.open()
    may_end, commit = Event(), sink._outbox.commit

    def slow(*arguments):
        assert may_end.wait(60)
        commit(*arguments)

    monkeypatch.setattr(sink._outbox, "commit", slow)
    sink.write(row(1))
    assert sink.progress() is None
    for number in (2, 3, 4):
        sink.write(row(number))
        assert sink.progress() is None
    assert [wait.kind for wait in sink.waits()] == ["answer"]
    may_end.set()
    assert sink.flush() == at(4)
    sink.close()
    assert numbers(place) == [1, 2, 3, 4]


def test_headers_tell_the_row_of_a_transaction_in_all_its_parts(exact):
    sink = exact.sink(headers={"of": "{schema}.{table} {op}", "at": "{commit_ts}/{row}"})
    sink.open()
    sink.write(batch(transaction(7, insert(ORDERS, 1, "x"), insert(ORDERS, 2, "x"), last=False)))
    sink.write(batch(transaction(7, delete(ORDERS, 1, "x"))))
    sink.flush()
    sink.close()
    found = [dict(one.headers() or ()) for one in messages(exact.brokers, exact.topic)]
    assert found[:3] == [
        {"of": b"shop.orders insert", "at": b"7/0"},
        {"of": b"shop.orders insert", "at": b"7/1"},
        {"of": b"shop.orders delete", "at": b"7/2"},
    ]


def test_open_protocol_has_rows_of_one_partition_in_a_message(mock_kafka):
    place = KafkaPlace(mock_kafka.brokers, format="open-protocol", encoding={}, headers={}, partition="key")
    mock_kafka.create_topic(place.topic, 3)
    mock_kafka.create_topic(f"{place.topic}_checkpoint")
    sink = place.sink(watermark_seconds=1000)
    sink.open()
    sink._marked_at = sink._now()
    sink.write(batch(transaction(1, *[insert(ORDERS, number, "x") for number in range(9)])))
    sink.flush()
    sink.close()
    found = messages(place.brokers, place.topic)
    assert sorted(one.partition() for one in found) == [0, 1, 2]


def test_a_right_to_write_transactions_may_be_missing(exact, mock_kafka):
    mock_kafka.answer(INIT_PRODUCER_ID, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    with pytest.raises(SinkError, match="no right to begin transactions"):
        exact.sink().open()


@pytest.mark.parametrize("error", ["COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"])
def test_a_commit_waits_for_its_coordinator(exact, mock_kafka, error):
    sink = exact.sink()
    sink.open()
    sink.write(row(1))
    mock_kafka.answer(END_TRANSACTION, getattr(KafkaError, error))
    assert sink.flush() == at(1)
    sink.close()


@pytest.mark.parametrize("took_place", [True, False])
def test_after_a_commit_of_unknown_outcome_the_checkpoint_decides(exact, monkeypatch, took_place):
    sink = exact.sink()
    sink.open()
    sink.write(row(1))
    sink.flush()
    commit = sink._outbox.commit

    def interrupted(*arguments):
        if took_place:
            commit(*arguments)
        raise Retryable("the answer was lost")

    sink.write(batch(transaction(2, insert(ORDERS, 2, "x"), last=False)))
    sink.write(batch(transaction(2, insert(ORDERS, 3, "x"))))
    with monkeypatch.context() as patch:
        patch.setattr(sink._outbox, "commit", interrupted)
        with pytest.raises(Retryable):
            sink.flush()
    sink.write(batch(transaction(2, insert(ORDERS, 2, "x"), last=False)))
    sink.write(batch(transaction(2, insert(ORDERS, 3, "x"))))
    sink.write(row(4))
    assert sink.flush() == at(4)
    sink.close()
    found = numbers(exact)
    if took_place:
        assert found == [1, 2, 3, 4]
    else:  # imitated brokers show aborted messages, if they came before the abort
        assert (found[0], found[-3:]) == (1, [2, 3, 4])


def test_a_checkpoint_that_somebody_else_moved_stops_the_feed(exact, monkeypatch):
    sink, other = exact.sink(), exact.sink()
    sink.open()
    sink.write(row(1))
    sink.flush()
    with monkeypatch.context() as patch:
        patch.setattr(sink._outbox, "send", lambda _: (_ for _ in ()).throw(Retryable("gone")))
        with pytest.raises(Retryable):
            sink.write(row(2))
    assert other.open() == at(1)
    other.write(row(2))
    other.flush()
    other.close()
    with pytest.raises(SinkError, match="moved by somebody else"):
        sink.write(row(2))
    sink.close()
