"""The contract of every SQL database as a target, besides that of every sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

import pytest
from msgspec.structs import replace

from tidemill.errors import SinkError
from tidemill.events import (
    REST,
    STALE,
    WHOLE,
    Batch,
    ChangeColumn,
    Chunk,
    CreateTable,
    DropTable,
    RenameTables,
    Row,
    RowChange,
    Table,
)
from tidemill.sink import NotReproducible
from tidemill.testing.changes import (
    LOOSE,
    ORDERS,
    PAIRS,
    alter,
    at,
    batch,
    chunk,
    create,
    delete,
    insert,
    transaction,
    update,
)

from .conformance import Conformance, Killed, Place, feed


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

    def test_a_table_can_be_loaded_again(self, place):
        loaded(place, ORDERS, PAIRS, rows=[])
        again = at(30, loading={REST: WHOLE, "shop.orders": STALE})
        sink = place.sink()
        sink.open()
        rows = transaction(30, insert(ORDERS, 1, "a"), insert(PAIRS, 1, "b", 2))
        sink.write(Batch([rows], again))
        assert sink.flush() == again
        sink.close()
        fresh = replace(create(31, ORDERS), actions=(CreateTable(ORDERS, replaces=True),))
        for _ in range(2):  # the second time after a crash
            sink = place.sink()
            assert sink.open() == again
            sink.write(Batch([fresh], None))
            assert sink.has_table("shop", "orders")
            sink.close()
        items = [fresh, chunk(32, ORDERS, None, insert(ORDERS, 5, "new")), transaction(33, chunk=Chunk(""))]
        feed(place.sink(), items)
        assert place.rows(ORDERS) == [(5, "new")]
        assert place.rows(PAIRS) == [(1, "b", 2)]

    def test_what_came_before_a_change_that_must_be_loaded_is_durable(self, place):
        loaded(place, ORDERS, rows=[(1, "a")])
        number = replace(ORDERS.columns[1], kind="int", length=0, charset=None, collation=None)
        change = alter(31, ORDERS, "ALTER …", ChangeColumn("note", number, ORDERS.columns[1]))
        sink = place.sink()
        sink.open()
        sink.write(batch(transaction(30, insert(ORDERS, 2, "b"))))
        with pytest.raises(
            NotReproducible, match=r"shop\.orders must be loaded again: column note: "
        ) as error:
            sink.write(batch(change))
        assert error.value.table == "shop.orders"
        assert sink.flush() == at(30)
        assert Counter(place.rows(ORDERS)) == Counter([(1, "a"), (2, "b")])
        sink.close()

    @pytest.mark.parametrize("nth", range(1, 9))
    def test_parts_of_a_change_are_each_applied_once(self, place, nth, monkeypatch):
        """A table leaves the tables of the sink, and another takes its name."""
        loaded(place, ORDERS, replace(ORDERS, name="fresh"))
        feed(place.sink(), [transaction(30, insert(replace(ORDERS, name="fresh"), 1, "fresh"))])
        query = "RENAME TABLE orders TO elsewhere, fresh TO orders"
        pair = ("shop", "fresh"), ("shop", "orders")
        items = [
            replace(alter(31, ORDERS, query, DropTable()), position="", last=False),
            replace(alter(31, ORDERS, query, RenameTables((pair,))), table="fresh"),
        ]
        passes = count(1)

        def dies(_point):
            if next(passes) == nth:
                raise Killed

        with monkeypatch.context() as patched, suppress(Killed):
            for module in ("sql", "mysql_changes"):
                patched.setattr(f"tidemill.sink.sql.{module}.reach", dies)
            feed(place.sink(), items)
        feed(place.sink(), items)
        assert place.rows(ORDERS) == [(1, "fresh")]
        sink = place.sink()
        assert sink.open() == at(31)
        assert not sink.has_table("shop", "fresh")
        sink.close()

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
