"""Tables that aren't rolled back: their rows are applied safely after a start.

MySQL with GTIDs refuses to change such a table in a transaction.
"""

from __future__ import annotations

from time import time

import pytest

from tidemill.errors import SinkError
from tidemill.events import compose_ts
from tidemill.sink import Delivery
from tidemill.testing.changes import LOOSE, ORDERS, PAIRS, batch, delete, insert, transaction, update
from tidemill.testing.sink_conformance import feed

from ..dialects.places import MariaDbPlace
from ..sink.sql_conformance import loaded

LATER = compose_ts(int(time() * 1000) + 3_600_000)


@pytest.fixture
def place(mariadb, database):
    return MariaDbPlace(mariadb, database)


@pytest.fixture
def unkept(place):
    """The place with a table of an engine without transactions."""
    loaded(place, ORDERS, rows=[(1, "a"), (2, "b"), (3, "c")])
    place.query("ALTER TABLE orders ENGINE=MyISAM")
    return place


CHANGES = [update(ORDERS, (2, "b"), (2, "y")), delete(ORDERS, 3, "c"), insert(ORDERS, 4, "d")]


def half_applied(place, *changes, **options):
    """Write a transaction, and end without its commit."""
    sink = place.sink(workers=1, **options)
    sink.open()
    sink.write(batch(transaction(30, *changes)))
    sink.close()


@pytest.mark.parametrize("workers", [1, 4])
def test_a_transaction_that_was_not_rolled_back_is_applied_again(unkept, workers):
    half_applied(unkept, *CHANGES)
    assert sorted(unkept.rows(ORDERS)) == [(1, "a"), (2, "y"), (4, "d")]
    feed(unkept.sink(workers=workers), [transaction(30, *CHANGES), transaction(31, delete(ORDERS, 1, "a"))])
    assert sorted(unkept.rows(ORDERS)) == [(2, "y"), (4, "d")]


@pytest.mark.parametrize("workers", [1, 4])
def test_safe_mode_ends_once_the_checkpoint_has_passed_the_start(unkept, workers):
    sink = unkept.sink(workers=workers)
    delivery = Delivery(sink, sink.open())

    def reasons_after(*items):
        delivery.accept(items)
        delivery.run(0)
        delivery.flush(0)
        return delivery.statistics().safe_mode

    assert delivery.statistics().safe_mode == {}
    assert reasons_after(transaction(30, *CHANGES)) == {"after start": 1}
    assert reasons_after(transaction(31, update(ORDERS, (9, "?"), (9, "i")))) == {"after start": 1}
    assert reasons_after(transaction(LATER)) == {}
    assert reasons_after(transaction(LATER + 1, insert(ORDERS, 5, "e"))) == {}
    delivery.close()
    assert sorted(unkept.rows(ORDERS)) == [(1, "a"), (2, "y"), (4, "d"), (5, "e"), (9, "i")]


def test_a_table_that_is_rolled_back_needs_no_safe_mode(place):
    loaded(place, PAIRS)
    sink = place.sink()
    delivery = Delivery(sink, sink.open())
    delivery.accept([transaction(30)])
    delivery.run(0)
    assert delivery.statistics().safe_mode == {}
    delivery.close()


def test_a_rejected_row_is_kept_and_the_others_are_applied_again(unkept):
    unkept.query("ALTER TABLE orders ADD CONSTRAINT short CHECK (id < 100)")
    changes = [insert(ORDERS, 10, "j"), insert(ORDERS, 100, "no"), *CHANGES]
    sink = unkept.sink(on_error="dead letters")
    feed(sink, [transaction(30, *changes)])
    assert sorted(unkept.rows(ORDERS)) == [(1, "a"), (2, "y"), (4, "d"), (10, "j")]
    assert unkept.query("SELECT COUNT(*) FROM tidemill_dead_letters") == [(1,)]


def test_such_a_table_without_a_key_is_refused(place):
    loaded(place, LOOSE)
    place.query(f"ALTER TABLE {LOOSE.name} ENGINE=MyISAM")
    with pytest.raises(SinkError, match=f"{LOOSE.name} has no key, and its engine no transactions"):
        feed(place.sink(), [transaction(30, insert(LOOSE, 1, "a"))])
    assert place.rows(LOOSE) == []
