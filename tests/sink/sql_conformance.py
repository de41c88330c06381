"""The contract of every SQL database as a target, besides that of every sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import count, pairwise
from random import Random

import pytest
from msgspec.structs import replace

from tidemill.errors import NotReproducible, Retryable, SinkError
from tidemill.events import (
    REST,
    STALE,
    WHOLE,
    Batch,
    ChangeColumn,
    Chunk,
    Column,
    CreateTable,
    DropTable,
    RenameTables,
    Row,
    RowChange,
    Table,
)
from tidemill.testing import column_kinds as kinds
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
from tidemill.testing.sink_conformance import Killed, SinkConformance, SinkPlace, feed

BATCH = 10_000
NOTED = Table(
    "shop",
    "noted",
    (*ORDERS.columns, Column("n", "int")),
    key=(0,),
    charset="utf8mb4",
    collation="utf8mb4_general_ci",
)


def loaded(place: SinkPlace, *tables: Table, rows: Sequence[Row] = ()) -> None:
    """Create tables in the target, with the same rows in each."""
    items = [create(number, table) for number, table in enumerate(tables, 1)]
    items += [
        chunk(10 + number, table, None, *[insert(table, *row) for row in rows])
        for number, table in enumerate(tables)
    ]
    feed(place.sink(), [*items, transaction(20, chunk=Chunk(""))])


def assert_refused(place: SinkPlace, table: Table, change: RowChange, named: str) -> None:
    """A change that doesn't fit, among others that do, is named, and nothing is written."""
    loaded(place, table, rows=[(1, "a"), (2, "b")])
    others = [insert(table, n, "new") for n in range(100, 110)]
    with pytest.raises(SinkError, match=named):
        feed(place.sink(), [transaction(30, *others, change, insert(table, 200, "new"))], max_rows=1000)
    assert place.rows(table) == [(1, "a"), (2, "b")]
    sink = place.sink()
    assert sink.open().ts == 20
    sink.close()


class SqlConformance(SinkConformance):
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

    def test_a_syncpoint_is_recorded_once_everything_up_to_it_is_there(self, place):
        loaded(place, ORDERS)
        sink = place.sink(syncpoint_seconds=0.000_001, syncpoint_keep_seconds=1)
        sink.open()
        try:
            for ts in 30, 31, 32:
                sink.write(batch(transaction(ts, insert(ORDERS, ts, "new"))))
                sink.flush()
                sink.write(batch(transaction(ts)))
                sink.flush()
                assert place.syncpoint().primary_ts == ts
        finally:
            sink.close()

    @pytest.mark.parametrize("others", [0, 40], ids=["alone", "among others"])
    def test_values_of_megabytes_come_as_they_are(self, place, others):
        long = "\"'\\,é\n" * 200_000
        columns = (
            ORDERS.columns[0],
            Column("t", "text", length=4, charset="utf8mb4"),
            Column("b", "blob", length=4),
        )
        table = Table("shop", "long", columns, (0,), charset="utf8mb4", collation="utf8mb4_bin")
        rows = [
            (1, long, bytes(range(256)) * 5_000),
            (2, None, b""),
            *[(3 + n, "", None) for n in range(others)],
        ]
        loaded(place, table)
        other = (1, long[1:], long.encode())
        feed(place.sink(), [transaction(30, *[insert(table, *row) for row in rows])])
        assert sorted(place.rows(table)) == rows
        feed(place.sink(), [transaction(31, update(table, rows[0], other), delete(table, *rows[1]))])
        assert sorted(place.rows(table)) == [other, *rows[2:]]

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
            for module in ("sink.sql.sql", "dialects.mysql.changes"):
                patched.setattr(f"tidemill.{module}.reach", dies)
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
        two.write(batch(transaction(29)))
        two.flush()
        one.close(), one.open()
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
        with pytest.raises(Retryable, match="came late"):
            two.flush()
        two.write(batch(transaction(31)))
        two.flush()
        one.write(batch(transaction(32)))
        with pytest.raises(SinkError, match="moved by somebody else"):
            one.flush()
        two.close()

    # --- many changes of a table without a key

    @pytest.mark.parametrize("gone", [4, 150, 899, 900, 901, 1_000])
    def test_as_many_equal_rows_go_as_the_log_says(self, place, gone):
        rows = [(1, "same")] * 1_000
        loaded(place, LOOSE, rows=[*rows, (None, None), (2, "Same")])
        feed(place.sink(), [transaction(30, *[delete(LOOSE, *one) for one in rows[:gone]])], max_rows=BATCH)
        assert Counter(place.rows(LOOSE)) == Counter([*rows[gone:], (None, None), (2, "Same")])

    def test_one_more_than_there_are_is_named_and_nothing_is_written(self, place):
        loaded(place, LOOSE, rows=[(1, "same")] * 10)
        with pytest.raises(SinkError, match=r"delete of shop.loose .n=1, word='same'.: there is no such row"):
            feed(place.sink(), [transaction(30, *[delete(LOOSE, 1, "same")] * 11)], max_rows=BATCH)
        assert place.rows(LOOSE) == [(1, "same")] * 10

    def test_a_row_that_wanders_within_a_batch_is_followed(self, place):
        loaded(place, LOOSE, rows=[(1, "a"), (9, "z")])
        values = ["a", "b", "a", "c", "d", "e"]
        moves = [update(LOOSE, (1, one), (1, other)) for one, other in pairwise(values)]
        added = [insert(LOOSE, 5, "x"), delete(LOOSE, 5, "x"), insert(LOOSE, 5, "x"), delete(LOOSE, 9, "z")]
        feed(place.sink(), [transaction(30, *moves, *added)], max_rows=BATCH)
        assert Counter(place.rows(LOOSE)) == Counter([(1, "e"), (5, "x")])

    @pytest.mark.parametrize("seed", range(4))
    def test_any_changes_of_equal_rows_end_with_the_rows_of_the_source(self, place, seed):
        random = Random(seed)
        rows = [(random.choice([None, 1, 2]), random.choice([None, "", "a", "A", "a "])) for _ in range(60)]
        loaded(place, LOOSE, rows=rows)
        items = []
        for ts in range(30, 36):
            changes = []
            for _ in range(random.choice([1, 5, 40])):
                after = random.choice([None, 1, 2]), random.choice([None, "", "a", "A", "a "])
                kind = random.choice(["insert", "update", "delete"]) if rows else "insert"
                if kind == "insert":
                    changes.append(insert(LOOSE, *after))
                    rows.append(after)
                    continue
                before = rows.pop(random.randrange(len(rows)))
                changes.append(delete(LOOSE, *before) if kind == "delete" else update(LOOSE, before, after))
                rows += [] if kind == "delete" else [after]
            items.append(transaction(ts, *changes))
        feed(place.sink(), items, max_rows=random.choice([1, 7, BATCH]))
        assert Counter(place.rows(LOOSE)) == Counter(rows)

    # --- rows that were changed by hand

    def test_with_verification_every_value_is_as_it_was(self, place):
        table, rows = kinds.KEYED, [*map(place.storable, (*kinds.ROWS, kinds.NULLS))]
        loaded(place, table, rows=rows)
        new = [(row[0], *other[1:]) for row, other in zip(rows, [*rows[1:], rows[0]], strict=True)]
        updates = [update(table, before, after) for before, after in zip(rows, new, strict=True)]
        feed(place.sink(verify="before"), [transaction(30, *updates)], max_rows=1000)
        feed(place.sink(verify="before"), [transaction(31, *[delete(table, *row) for row in new[1:]])])
        assert [row[0] for row in place.rows(table)] == [new[0][0]]

    @pytest.mark.parametrize("others", [1, 20])
    @pytest.mark.parametrize("value", ["Z", "A", "z ", None])
    def test_with_verification_a_row_that_differs_is_named_with_its_columns(self, place, value, others):
        rows = [(1, "z", 5), *[(n, "x", n) for n in range(2, 2 + others)]]
        differing = [(1, value, 5), *rows[1:]]
        loaded(place, NOTED, rows=differing)
        differs = f"note is {value!r} here, and was 'z' in the source; was the target changed by something"
        for change in update(NOTED, rows[0], (1, "y", 8)), delete(NOTED, *rows[0]):
            changes = [*[delete(NOTED, *row) for row in rows[1:]], change]
            with pytest.raises(SinkError, match=f"{change.op} of shop.noted .id=1.: {differs}"):
                feed(place.sink(verify="before"), [transaction(40, *changes)], max_rows=1000)
            assert place.rows(NOTED) == differing

    def test_with_verification_several_columns_and_missing_rows_are_named(self, place):
        loaded(place, NOTED, rows=[(1, None, 5)])
        with pytest.raises(SinkError, match=r"note is None here, and was '' in the source, n is 5 here, and"):
            feed(place.sink(verify="before"), [transaction(30, update(NOTED, (1, "", 6), (9, "", 6)))])
        with pytest.raises(SinkError, match=r"delete of shop.noted .id=2.: there is no such row"):
            feed(place.sink(verify="before"), [transaction(30, delete(NOTED, 2, "", 6))])
