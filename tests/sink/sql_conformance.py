"""The contract of every SQL database as a target, besides that of every sink."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tidemill.errors import SinkError
from tidemill.events import Chunk, Row, RowChange, Table
from tidemill.testing.changes import LOOSE, ORDERS, batch, chunk, create, delete, insert, transaction, update

from .conformance import Conformance, Place, feed


def loaded(place: Place, *tables: Table, rows: Sequence[Row] = ()) -> None:
    """Create tables in the target, with the same rows in each."""
    items = [create(number, table) for number, table in enumerate(tables, 1)]
    items += [
        chunk(10 + number, table, None, *[insert(table, *row) for row in rows])
        for number, table in enumerate(tables)
    ]
    feed(place.sink(), [*items, transaction(20, chunk=Chunk(""))])


def assert_refused(place: Place, table: Table, change: RowChange, named: str) -> None:
    """A change that doesn't fit, among others that do, is named, and nothing is written."""
    loaded(place, table, rows=[(1, "a"), (2, "b")])
    others = [insert(table, n, "new") for n in range(100, 110)]
    with pytest.raises(SinkError, match=named):
        feed(place.sink(), [transaction(30, *others, change, insert(table, 200, "new"))], max_rows=1000)
    assert place.rows(table) == [(1, "a"), (2, "b")]
    sink = place.sink()
    assert sink.open().ts == 20
    sink.close()


class SqlConformance(Conformance):
    @pytest.mark.parametrize(
        ("table", "change", "named"),
        [
            (ORDERS, update(ORDERS, (7, "x"), (7, "y")), "update of shop.orders .id=7."),
            (ORDERS, update(ORDERS, (7, "x"), (8, "y")), "update of shop.orders .id=7."),
            (ORDERS, delete(ORDERS, 7, "x"), "delete of shop.orders .id=7."),
            (LOOSE, delete(LOOSE, 1, "A"), "delete of shop.loose .n=1, word='A'."),
            (LOOSE, delete(LOOSE, 1, "other"), "delete of shop.loose .n=1, word='other'."),
            (LOOSE, update(LOOSE, (2, None), (2, "")), "update of shop.loose .n=2, word=None."),
        ],
    )
    def test_a_row_that_is_not_there_is_named_and_nothing_is_written(self, place, table, change, named):
        assert_refused(place, table, change, f"{named}: there is no such row")

    def test_the_same_feed_twice_is_noticed(self, place):
        loaded(place, ORDERS)
        one, two = place.sink(), place.sink()
        one.open(), two.open()
        one.write(batch(transaction(30, insert(ORDERS, 1, "x"))))
        one.flush()
        two.write(batch(transaction(31, insert(ORDERS, 2, "x"))))
        with pytest.raises(SinkError, match="moved by somebody else; is the same feed running twice"):
            two.flush()
        one.close()
        assert place.rows(ORDERS) == [(1, "x")]

    def test_two_that_begin_together_are_noticed(self, place):
        one, two = place.sink(), place.sink()
        one.open(), two.open()
        one.write(batch(transaction(30)))
        one.flush()
        two.write(batch(transaction(31)))
        with pytest.raises(SinkError, match="moved by somebody else"):
            two.flush()
        one.close()
