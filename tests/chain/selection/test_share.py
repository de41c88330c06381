"""Rows that are divided among several sinks by a hash."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from zlib import crc32

import pytest
from msgspec.structs import replace

from tidemill.chain.selection.rule import Rule
from tidemill.chain.selection.share import Share
from tidemill.chain.selection.stage import SelectionStage
from tidemill.errors import SinkError
from tidemill.events import AddColumn, ChangeColumn, ChangeKey, Column, DropColumn, Table
from tidemill.testing.changes import LOOSE, ORDERS, PAIRS, alter, delete, insert, transaction, update


def stages(count: int, *columns: str) -> list[SelectionStage]:
    return [
        SelectionStage([Rule(share=Share(number, count, columns), keeps=True)]) for number in range(count)
    ]


def shares(count, changes, *columns):
    """Return the changes that each sink gets."""
    return [list(stage.apply([transaction(7, *changes)])[0].rows) for stage in stages(count, *columns)]


def share_of(table: Table, row, count: int, *columns: str) -> int:
    (number,) = [n for n in range(count) if Share(n, count, columns).test(table)(row)]
    return number


@pytest.mark.parametrize("count", [2, 3, 8])
def test_each_row_is_in_one_share_and_the_shares_are_alike_in_size(count):
    changes = [insert(ORDERS, number, "x") for number in range(4000)]
    found = shares(count, changes)
    assert sorted(row.after for share in found for row in share) == [row.after for row in changes]
    sizes = [len(share) for share in found]
    assert min(sizes) > 0.9 * len(changes) / count


def test_shares_are_independent_of_the_partitions_of_a_kafka_sink():
    rows = [(number, "x") for number in range(1000)]
    found = Counter((share_of(ORDERS, row, 2), crc32(b"%d" % row[0]) % 2) for row in rows)
    assert min(found.values()) > 200


def test_the_share_of_a_row_is_the_same_in_every_version():
    assert [share_of(ORDERS, (number, "x"), 8) for number in (1, 2, 2**31 - 1, -5)] == [6, 4, 4, 6]
    assert [share_of(PAIRS, (1, word, 1), 8) for word in ("a", "A", "ä", "\udcff")] == [2, 4, 5, 4]
    assert share_of(LOOSE, (None, "x"), 8, "n") == 4


def test_an_update_that_moves_a_row_is_a_delete_in_one_sink_and_an_insert_in_the_other():
    there, here = (next(n for n in range(99) if share_of(ORDERS, (n, ""), 2) == share) for share in (0, 1))
    moved, stays = update(ORDERS, (there, "x"), (here, "y")), update(ORDERS, (here, "x"), (here, "y"))
    assert shares(2, [moved, stays]) == [
        [delete(ORDERS, there, "x")],
        [insert(ORDERS, here, "y"), stays],
    ]


def test_by_columns_rows_of_equal_values_are_together_also_of_other_tables():
    orders = [insert(ORDERS, number, f"note {number % 20}") for number in range(200)]
    found = shares(4, orders, "NOTE")
    notes = [{row.after[1] for row in share} for share in found]
    assert sum(map(len, notes)) == 20
    assert share_of(LOOSE, (1, "note 3"), 4, "word") == share_of(ORDERS, (9, "note 3"), 4, "note")


@pytest.mark.parametrize(
    ("kind", "value", "same"),
    [
        ("decimal", Decimal("1.5"), Decimal("1.50")),
        ("datetime", dt.datetime.fromisoformat("2026-01-31"), "2026-01-31 00:00:00"),
        ("varbinary", b"a", bytearray(b"a")),
        ("blob", b"a", memoryview(b"a")),
        ("time", dt.timedelta(seconds=1), dt.timedelta(milliseconds=1000)),
    ],
)
def test_a_value_is_in_one_share_however_it_was_read(kind, value, same):
    table = Table("shop", "t", (Column("k", kind, scale=2, nullable=False),), key=(0,))
    for count in (2, 3, 5, 7, 64):
        assert share_of(table, (value,), count) == share_of(table, (same,), count)


@pytest.mark.parametrize(
    ("table", "columns", "error"),
    [
        (
            LOOSE,
            (),
            r"table shop\.loose can't be divided .*: no primary key: name the columns .* in split_by",
        ),
        (ORDERS, ("customer",), r"no column 'customer' of split_by; it has: id, note"),
        (
            replace(ORDERS, columns=(Column("id", "json"), ORDERS.columns[1])),
            (),
            r"column id, a json, can't be hashed: name others in split_by",
        ),
    ],
)
def test_a_table_that_can_t_be_divided_is_refused(table, columns, error):
    with pytest.raises(SinkError, match=error):
        shares(2, [insert(table, 1, "x")], *columns)


ID, OTHER_ID = ORDERS.columns[0], replace(ORDERS.columns[0], unsigned=not ORDERS.columns[0].unsigned)
NOTE = ORDERS.columns[1]
LONG_NOTE = replace(NOTE, length=90, nullable=False)


@pytest.mark.parametrize(
    ("actions", "is_loaded"),
    [
        ([ChangeKey(("note",))], True),
        ([ChangeColumn("id", OTHER_ID, ID)], True),
        ([ChangeColumn("id", replace(OTHER_ID, name="no"), ID)], True),
        ([ChangeColumn("id", replace(ID, kind="bigint"), replace(ID, kind="int"))], False),
        ([DropColumn("id"), AddColumn(ID)], True),
        ([ChangeColumn("note", LONG_NOTE, NOTE)], False),
        ([AddColumn(Column("more", "int", nullable=False)), DropColumn("note")], False),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_table_whose_key_gets_other_values_is_loaded_again(actions, is_loaded, is_known):
    stage = stages(2)[0]
    if is_known:
        stage.apply([transaction(6, insert(ORDERS, 1, "x"))])
    ddl = alter(7, ORDERS, "ALTER …", *actions)
    (found,) = stage.apply([ddl])
    if is_loaded:
        assert found.actions == ()
        assert found.reload == (
            "table shop.orders: the key by which its rows are divided was changed: ALTER …"
        )
    else:
        assert found == ddl


def test_before_any_row_a_column_that_can_not_be_null_may_be_in_the_key():
    strict = replace(NOTE, nullable=False)
    ddl = alter(7, ORDERS, "ALTER …", ChangeColumn("note", strict, LONG_NOTE))
    assert stages(2)[0].apply([ddl])[0].reload
    known = stages(2)[0]
    known.apply([transaction(6, insert(ORDERS, 1, "x"))])
    assert known.apply([ddl]) == [ddl]
