from __future__ import annotations

import pytest
from msgspec.structs import replace

from tidemill.errors import Retryable, SinkError
from tidemill.events import Checkpoint
from tidemill.sink import Delivery, DeliveryOptions
from tidemill.sink.python import Acknowledgements, PythonSink
from tidemill.testing.changes import ORDERS, MemoryStore, at, batch, insert, transaction


def opened(receive, store=None, *, explicit=False):
    sink = PythonSink(
        "copy", receive, store or MemoryStore(), acknowledgements=Acknowledgements() if explicit else None
    )
    sink.open()
    return sink


def rows(ts, *ids, last=True):
    return transaction(ts, *[insert(ORDERS, i, "") for i in ids], last=last)


def test_a_function_gets_the_items_of_each_batch_without_empty_ones():
    heard = []
    sink = opened(heard.append)
    sink.write(batch(rows(1, 1), transaction(2), rows(3, 2)))
    sink.write(batch(transaction(4)))
    assert heard == [[rows(1, 1), rows(3, 2)]]
    assert sink.flush() == at(4)


def test_what_the_function_returned_from_is_processed():
    store = MemoryStore()
    sink = opened(lambda items: None, store)
    sink.write(batch(rows(1, 1)))
    sink.flush()
    assert store.load() == (at(1), 0)
    assert opened(None, store).flush() == at(1)


def test_with_acknowledgements_only_what_was_acknowledged_is():
    store = MemoryStore()
    store.save(at(0))
    sink = opened(lambda items: None, store, explicit=True)
    items = [rows(ts, ts) for ts in (1, 2, 3)]
    sink.write(batch(*items))
    sink.write(batch(rows(4, 4)))
    assert sink.flush() == at(0)
    sink.acknowledgements.add(items[1])
    assert sink.flush() == at(2)
    sink.acknowledgements.add(items[0])
    assert sink.flush() == at(2)
    sink.acknowledgements.add(rows(4, 4))
    assert sink.flush() == at(4)
    assert store.load() == (at(4), 0)


def test_empty_transactions_need_no_acknowledgement_but_those_before_them_do():
    sink = opened(lambda items: None, explicit=True)
    sink.write(batch(transaction(1)))
    assert sink.flush() == at(1)
    sink.write(batch(rows(2, 1), transaction(3)))
    assert sink.flush() == at(1)
    sink.acknowledgements.add(rows(2, 1))
    assert sink.flush() == at(3)


def test_of_two_transactions_with_one_ts_both_must_be_acknowledged():
    """TiDB has such; a restart begins behind a ts, never between two."""
    store = MemoryStore()
    store.save(at(0))
    sink = opened(lambda items: None, store, explicit=True)
    first, second = rows(7, 1), replace(rows(7, 2), start_ts=6)
    sink.write(batch(rows(5, 3), first, second))
    sink.acknowledgements.add(first)
    assert sink.flush() == at(5)
    sink.acknowledgements.add(second)
    assert sink.flush() == at(7)


def test_a_piece_is_not_yet_its_transaction():
    sink = opened(lambda items: None, explicit=True)
    sink.write(batch(rows(1, 1)))
    sink.write(batch(rows(2, 2, last=False)))
    sink.acknowledgements.add(rows(2, 2))
    assert sink.flush() == at(1)
    sink.write(batch(rows(2, 3)))
    assert sink.flush() == at(2)


def test_the_end_of_a_transaction_in_parts_is_given_even_without_rows():
    heard = []
    sink = opened(heard.append, explicit=True)
    sink.write(batch(rows(1, 1, last=False)))
    sink.write(batch(transaction(1), transaction(2)))
    assert heard == [[rows(1, 1, last=False)], [transaction(1)]]


def test_reopened_it_begins_at_what_was_processed():
    store = MemoryStore()
    sink = opened(lambda items: None, store, explicit=True)
    sink.write(batch(rows(1, 1)))
    sink.acknowledgements.add(rows(1, 1))
    sink.flush()
    sink.write(batch(rows(2, 2)))
    sink.close()
    sink.acknowledgements.add(rows(2, 2))
    assert sink.open() == at(1)
    assert sink.flush() == at(1)
    sink.write(batch(rows(2, 2), rows(3, 3)))
    assert sink.flush() == at(2)


@pytest.mark.parametrize("error", [ZeroDivisionError("1/0"), SystemExit(3)])
def test_an_error_of_the_function_is_fatal_and_named(error):
    def broken(items):
        raise error

    with pytest.raises(SinkError) as raised:
        opened(broken).write(batch(rows(1, 1)))
    assert str(raised.value) == f"sink copy: its function raised {error!r}"


def test_a_function_may_ask_for_the_same_again():
    heard = []

    def busy(items):
        heard.append(items)
        if len(heard) == 1:
            raise Retryable("not now", 3.0)

    sink = opened(busy)
    work = Delivery(sink, Checkpoint(0, "log:0"), "src")
    work.accept([rows(1, 1)])
    with pytest.raises(Retryable):
        work.run(0)
    work.run(0)
    assert heard == [[rows(1, 1)], [rows(1, 1)]]
    assert work.statistics().checkpoint == at(1)


@pytest.mark.parametrize("count", [11, 12])
def test_however_much_waits_for_its_acknowledgement_the_last_of_it_counts(monkeypatch, count):
    monkeypatch.setattr("tidemill.sink.python._MAX_PENDING", 10)
    store = MemoryStore()
    store.save(at(0))
    sink = opened(lambda items: None, store, explicit=True)
    items = [rows(ts, ts) for ts in range(1, count + 1)]
    sink.write(batch(*items))
    sink.acknowledgements.add(items[-1])
    assert sink.flush() == at(count)


def test_what_is_never_acknowledged_takes_bounded_memory(monkeypatch):
    monkeypatch.setattr("tidemill.sink.python._MAX_PENDING", 10)
    store = MemoryStore()
    store.save(at(0))
    sink = opened(lambda items: None, store, explicit=True)
    work = Delivery(sink, at(0), "src", DeliveryOptions(max_rows=1))
    work.accept([rows(ts, ts) for ts in range(1, 101)])
    work.run(0)
    assert len(sink._pending) <= 10
    sink.acknowledgements.add(rows(60, 60))
    assert 0 <= sink.flush().ts <= 60
    sink.acknowledgements.add(rows(100, 100))
    assert sink.flush() == at(100)
