"""Handlers, attempts and interrupts of a function that takes items."""

from __future__ import annotations

from threading import Thread

from tidemill.events import compose_ts
from tidemill.sink.event_sink import EventSink
from tidemill.sink.handlers import EmptyTransactions, Handler
from tidemill.testing.changes import ORDERS, create, insert, transaction


class Noted(Handler):
    def __init__(self, name, notes, drops=0):
        self.name, self.notes, self.drops = name, notes, drops

    def before(self, items):
        self.notes.append(f"{self.name} before {len(items)}")
        return items[self.drops :]

    def retry(self, items):
        self.notes.append(f"{self.name} retry {len(items)}")

    def after(self, items):
        self.notes.append(f"{self.name} after {len(items)}")


ROW = transaction(7, insert(ORDERS, 1, "a"))


def test_handlers_are_called_in_order_before_at_each_failure_and_after():
    notes: list[str] = []
    answers = [True, False, False]
    sink = EventSink(lambda items: answers.pop(), [Noted("a", notes, drops=1), Noted("b", notes)])
    assert sink.sink([ROW, ROW])
    assert notes == [
        "a before 2",
        "b before 1",
        *["a retry 1", "b retry 1"] * 2,
        "a after 1",
        "b after 1",
    ]
    assert (sink.attempts, sink.paused_seconds) == (2, 0.0)


def test_nothing_is_put_if_the_handlers_drop_everything():
    assert EventSink(lambda items: 1 / 0, [Noted("a", [], drops=2)]).sink([ROW, ROW])


def test_pauses_grow_to_ten_milliseconds_after_three_attempts():
    answers = [None, *[False] * 12]
    sink = EventSink(lambda items: answers.pop())
    assert sink.sink([ROW])
    assert round(sink.paused_seconds * 1000) == 4 + 5 + 6 + 7 + 8 + 9 + 10 + 10 + 10


def test_an_interrupt_ends_the_attempts_with_false_until_it_is_resumed():
    taken: list[object] = []
    threads: list[Thread] = []

    def put(items):
        if not threads:
            threads.append(Thread(target=sink.interrupt))
            threads[0].start()
        if len(threads) < 2:
            return False
        taken.extend(items)
        return True

    sink = EventSink(put)
    assert not sink.sink([ROW])
    threads[0].join()
    assert not sink.sink([ROW])
    sink.resume()
    threads.append(threads[0])
    assert sink.sink([ROW])
    assert taken == [ROW]


def test_empty_lists_pass_once_in_five_seconds_or_after_the_maximum():
    def passes(milliseconds, *rows):
        return bool(handler.before([transaction(compose_ts(milliseconds, 0), *rows)]))

    handler = EmptyTransactions(max_dropped=3)
    begin = 1_700_000_000_000
    assert [passes(begin + n) for n in (0, 1, 5_000, 5_001)] == [True, False, False, True]
    assert [passes(begin + 5_001) for _ in range(5)] == [False, False, False, True, False]
    assert passes(begin + 5_002, insert(ORDERS, 1, "a"))
    assert handler.before([create(8, ORDERS)])
    assert handler.dropped == 6
