"""Rejected changes of rows in SQLite."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace

from tidemill.codec.exact_json import decode_values, encode_values
from tidemill.dialects.sqlite.apply import SqliteApplier
from tidemill.engine.sentences import letters_sentence
from tidemill.errors import SinkError
from tidemill.events import AddColumn, Column, RenameTables, TruncateTable
from tidemill.sink import Delivery, DeliveryOptions
from tidemill.testing import column_kinds as kinds
from tidemill.testing.cases import title
from tidemill.testing.changes import LOOSE, ORDERS, alter, create, insert, transaction, update

from .letter_cases import CASES, Play, box_of
from .test_conformance import SqlitePlace


class LetterPlace(SqlitePlace):
    def query(self, sql):
        connection = sqlite3.connect(self.path)
        rows = connection.execute(sql).fetchall()
        connection.commit()
        connection.close()
        return rows


@pytest.fixture
def place(tmp_path):
    return LetterPlace(tmp_path / "copy.db")


def play_of(place, **options):
    def reject():
        for table in ("shop.orders", "shop.loose"):
            for when, op in (("insert", "INSERT"), ("update", "UPDATE")):
                note = "note" if table == "shop.orders" else "word"
                place.query(
                    f'CREATE TRIGGER "{table} {when}" BEFORE {op} ON "{table}" WHEN NEW.{note} LIKE \'bad%\' '
                    "BEGIN SELECT RAISE(ABORT, 'bad note'); END"
                )

    def allow():
        for table in ("shop.orders", "shop.loose"):
            for when in ("insert", "update"):
                place.query(f'DROP TRIGGER "{table} {when}"')

    return Play(place, f"sqlite:///{place.path}", reject=reject, allow=allow, **options)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_dead_letters(case, place, rewrite):
    case.expect(play_of(place).run(case.commands), rewrite)


# --- how many attempts


@pytest.fixture
def attempts(monkeypatch):
    """The number of changes of each attempt to apply some."""
    sizes = []
    plain = SqliteApplier.apply

    def counted(self, groups):
        sizes.append(sum(len(group.changes) for group in groups))
        plain(self, groups)

    monkeypatch.setattr(SqliteApplier, "apply", counted)
    return sizes


@pytest.mark.parametrize(("bad", "most"), [(1, 22), (10, 160), (1000, 2000)])
def test_the_rejected_rows_of_a_batch_are_found_by_halves(place, attempts, bad, most):
    play = play_of(place)
    attempts.clear()
    notes = [insert(ORDERS, i, "bad" if i % (1000 // bad) == 0 else "good") for i in range(1000)]
    play.deliver([transaction(30, *notes)])
    assert len(place.rows(ORDERS)) == 1000 - bad
    assert bad <= len(attempts) <= most


def test_a_batch_without_letters_is_applied_at_once(place, attempts):
    play = play_of(place)
    play.deliver([transaction(30, insert(ORDERS, 1, "bad"))])
    attempts.clear()
    play.deliver([transaction(31, *[insert(ORDERS, i, "good") for i in range(2, 500)])])
    assert attempts == [498]


# --- errors


def test_an_error_names_transaction_position_and_statement(place):
    play = play_of(place, on_error="stop")
    with pytest.raises(SinkError) as error:
        play.deliver([transaction(30, insert(ORDERS, 1, "a"), insert(ORDERS, 2, "bad " + 300 * "x"))])
    assert str(error.value).startswith(
        f"sqlite:{place.path}: insert of shop.orders (id=2): bad note (commit ts"
    )
    assert "(commit ts 30, position log:30; statement: INSERT INTO" in str(error.value)
    assert len(str(error.value)) < 600
    assert error.value.ts == 30


def test_a_missing_table_is_no_error_of_a_row(place):
    play = play_of(place)
    place.query('DROP TABLE "shop.orders"')
    with pytest.raises(SinkError, match=r"the copy of shop\.orders, isn't there"):
        play.deliver([transaction(30, insert(ORDERS, 1, "a"))])
    assert place.query("SELECT COUNT(*) FROM tidemill_dead_letters") == [(0,)]


# --- what is kept


@pytest.mark.parametrize(
    "value",
    [
        None, 0, -(2**63), 2**64 - 1, 0.1, -0.0, 1e300, "", "é\ud800\0'", "0000-00-00", b"", b"\0\xff",
        Decimal("1.50"), Decimal("-1E+3"), date(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        datetime(1970, 1, 1, tzinfo=UTC), timedelta(hours=-838, microseconds=1), timedelta.max,
    ],
    ids=repr,
)  # fmt: skip
def test_values_are_decoded_exactly(value):
    (found,) = decode_values(encode_values([value]))
    assert (type(found), repr(found)) == (type(value), repr(value))


@pytest.mark.parametrize("value", [float("nan"), object(), [1]])
def test_values_without_a_form_are_refused(value):
    with pytest.raises((TypeError, ValueError)):
        encode_values([value])


@pytest.mark.parametrize("text", ['[{"decimal": "x"}]', "[{}]", '[{"other": 1}]', "1", "["])
def test_damaged_values_are_refused(text):
    with pytest.raises(ValueError, match=r"value|Expecting"):
        decode_values(text)


def test_rows_of_every_type_are_kept_and_applied(place):
    table, rows = kinds.KEYED, [*kinds.ROWS, kinds.NULLS]
    play = play_of(place)
    play.deliver([replace(create(20, table), query="CREATE TABLE everything")])
    place.query(
        f'CREATE TRIGGER stop BEFORE INSERT ON "{table.full_name}" '
        "BEGIN SELECT RAISE(ABORT, 'bad note'); END"
    )
    play.deliver([transaction(30, *[insert(table, *row) for row in rows])])
    assert place.rows(table) == []
    place.query("DROP TRIGGER stop")
    with closing(box_of(f"sqlite:///{place.path}")) as box:
        assert [one.after for one in box.list()] == rows
        assert box.retry().left == ()
    assert place.rows(table) == rows


# --- schema changes


def test_letters_of_a_dropped_or_emptied_table_are_dropped(place):
    play = play_of(place)
    play.deliver([transaction(30, insert(ORDERS, 1, "bad"), insert(LOOSE, 1, "bad"))])
    play.deliver([alter(31, ORDERS, "TRUNCATE orders", TruncateTable())])
    play.deliver([transaction(32, insert(ORDERS, 1, "good"))])
    assert play.run("") == "letter 2: insert of n=1, word='bad' at 30: bad note\norders: 1 good"


def test_letters_of_an_altered_table_stay(place):
    play = play_of(place)
    play.deliver([transaction(30, insert(ORDERS, 1, "bad"))])
    column = Column("paid", "int")
    play.deliver([alter(31, ORDERS, "ALTER TABLE orders ADD paid INT", AddColumn(column, None))])
    later = replace(ORDERS, columns=(*ORDERS.columns, column))
    play.deliver([transaction(32, update(later, (1, "bad", None), (1, "good", 5)))])
    with closing(box_of(f"sqlite:///{place.path}")) as box:
        (left,) = box.retry().left
        assert "the table was altered after this change" in left.reason
        assert [one.after for one in box.list()] == [(1, "bad"), (1, "good", 5)]


def test_a_table_with_letters_is_not_renamed(place):
    play = play_of(place)
    play.deliver([transaction(30, insert(ORDERS, 1, "bad"))])
    pair = ("shop", "orders"), ("shop", "others")
    with pytest.raises(SinkError, match=r"shop\.orders has dead letters, whose rows couldn't be found after"):
        play.deliver([alter(31, ORDERS, "RENAME TABLE orders TO others", RenameTables((pair,)))])


# --- status


def test_the_number_of_letters_follows_those_who_drop_them(place):
    play_of(place)
    with closing(place.sink(on_error="dead letters")) as sink:
        work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0))
        seen = []
        for item in transaction(30, insert(ORDERS, 1, "bad")), transaction(31, insert(ORDERS, 2, "a")):
            work.accept([item])
            work.run(0)
            seen.append(work.statistics().dead_letters)
            with closing(box_of(f"sqlite:///{place.path}")) as box:
                box.drop()
        assert seen == [1, 0]


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (0, ""),
        (1, "1 dead letter: run tidemill dead-letters list"),
        (2, "2 dead letters: run tidemill dead-letters list"),
    ],
)
def test_letters_are_a_warning(count, sentence):
    assert letters_sentence(count) == sentence
