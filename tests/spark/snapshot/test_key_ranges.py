"""Ranges of raw keys by conditions on a clustered key."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tidemill.codec.tidb.column_type import ColumnFlag, Type
from tidemill.codec.tidb.columns import columns_of
from tidemill.codec.tidb.key import decode_record_key, encode_int, record_key, record_span
from tidemill.codec.tidb.row_encoder import RowEncoder
from tidemill.codec.tidb.table_info import IndexColumn, IndexInfo, TableInfo
from tidemill.spark.snapshot.key_ranges import key_ranges
from tidemill.spark.snapshot.row_filter import RowFilter

from ...codec.tidb.tables import clustered, column, table

SIGNED = table()
UNSIGNED = TableInfo(
    id=7,
    name="t",
    columns=(column(1, Type.LONGLONG, ColumnFlag.PRI_KEY | ColumnFlag.NOT_NULL | ColumnFlag.UNSIGNED, "id"),),
    pk_is_handle=True,
)
GENERAL: dict[str, Any] = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci"}
PAIR = clustered(
    column(1, Type.VARCHAR, name="code", length=9, **GENERAL),
    column(2, Type.LONG, name="id"),
    column(3, Type.LONGLONG, ColumnFlag.UNSIGNED, name="big"),
    key=(0, 1, 2),
)
ENDS = {
    "signed": (-(1 << 63), -1, 0, (1 << 63) - 1),
    "unsigned": (0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
}


def handles(info: TableInfo, *filters: RowFilter) -> list[tuple[int | bytes, int | bytes]]:
    """Return the first and last handles of the ranges."""
    found = key_ranges(columns_of("s", info), [7], filters)
    return [
        (decode_record_key(start)[1], decode_record_key(end.removesuffix(b"\xff"))[1]) for start, end in found
    ]


def test_without_a_condition_on_the_key_all_rows_are_in_range() -> None:
    for info in (SIGNED, UNSIGNED, PAIR):
        columns = columns_of("s", info)
        assert key_ranges(columns, [9, 7], []) == [record_span(7), record_span(9)]
        assert key_ranges(columns, [7], [RowFilter("other", "=", (1,))]) == [record_span(7)]
        assert key_ranges(columns, [7], [RowFilter("id", "IS NOT NULL")]) == [record_span(7)]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([("=", 5)], [(5, 5)]),
        ([(">", 5)], [(6, (1 << 63) - 1)]),
        ([("<=", 5)], [(-(1 << 63), 5)]),
        ([(">=", -3), ("<", 5)], [(-3, 4)]),
        ([("IN", 9, 5, 500, 5)], [(5, 9), (500, 500)]),
        ([("IN", 1, 200), (">", 5)], [(200, 200)]),
        ([("IN", 1, 200), ("=", 3)], []),
        ([("=", 1 << 63)], []),
        ([("<", -(1 << 63))], []),
        ([(">", (1 << 70))], []),
        ([("<", (1 << 70))], [(-(1 << 63), (1 << 63) - 1)]),
    ],
)
def test_conditions_on_an_integer_key_are_ranges(filters: list[Any], wanted: Any) -> None:
    assert handles(SIGNED, *[RowFilter("id", name, tuple(values)) for name, *values in filters]) == wanted


def test_unsigned_numbers_from_two_to_the_63_are_first_in_the_keys() -> None:
    top = 1 << 63
    assert handles(UNSIGNED, RowFilter("id", "=", (top,))) == [(-top, -top)]
    assert handles(UNSIGNED, RowFilter("id", ">=", (7,))) == [(-top, -1), (7, top - 1)]
    assert handles(UNSIGNED, RowFilter("id", "<=", (7,))) == [(0, 7)]
    assert handles(UNSIGNED, RowFilter("id", "<", (0,))) == []


def test_a_prefix_of_a_column_and_texts_of_unknown_order_do_not_narrow() -> None:
    parts = (IndexColumn("code", 0, 3),)
    index = IndexInfo(id=1, name="PRIMARY", columns=parts, unique=True, primary=True)
    prefixed = TableInfo(id=7, name="t", columns=PAIR.columns, indexes=(index,), is_common_handle=True)
    unicode = clustered(
        column(1, Type.VARCHAR, name="code", length=9, charset="utf8mb4", collation="utf8mb4_unicode_ci"),
        key=(0,),
    )
    for info in (prefixed, unicode):
        assert key_ranges(columns_of("s", info), [7], [RowFilter("code", "=", ("a",))]) == [record_span(7)]


@pytest.mark.parametrize("new_collations", [True, False])
def test_random_rows_that_fit_are_in_range(new_collations: bool) -> None:
    """Accepted rows are in one of the ranges, and most others are in none."""
    random = Random(5)
    hits = misses = 0
    for info in (SIGNED, UNSIGNED, PAIR):
        encoder = RowEncoder("s", info, new_collations=new_collations)
        columns = columns_of("s", info)
        names = [field.column.name for field in columns.visible]
        for _ in range(2000):
            row = tuple(_value(info, name, random) for name in names)
            key, _ = encoder.encode(row)
            filters = [_filter(info, name, random) for name in random.choices(names, k=random.randint(1, 3))]
            found = key_ranges(columns, [7], filters)
            assert found == sorted(found)
            assert all(start < end for start, end in found)
            inside = sum(start <= key < end for start, end in found)
            if all(_accepts(one, row[names.index(one.column)]) for one in filters):
                assert inside == 1, (row, filters)
                hits += 1
            misses += not inside
    assert hits > 500
    assert misses > 1500


def _value(info: TableInfo, name: str, random: Random) -> Any:
    if name == "code":
        return random.choice(("", "a", "A", "a ", "abcdefghi", "b"))
    if name == "id" and info is PAIR:
        return random.choice((-(1 << 31), -1, 0, 1, 2, (1 << 31) - 1))
    ends = ENDS["signed" if info is SIGNED else "unsigned"]
    return random.choice((*ends, random.randrange(5)))


def _filter(info: TableInfo, name: str, random: Random) -> RowFilter:
    operator = random.choice(("=", "IN") if name == "code" else ("=", "IN", "<", "<=", ">", ">="))
    count = random.randint(1, 4) if operator == "IN" else 1
    return RowFilter(name, operator, tuple(_value(info, name, random) for _ in range(count)))


def _accepts(one: RowFilter, value: Any) -> bool:
    match one.operator:
        case "<":
            return bool(value < one.values[0])
        case "<=":
            return bool(value <= one.values[0])
        case ">":
            return bool(value > one.values[0])
        case ">=":
            return bool(value >= one.values[0])
    return value in one.values


def test_a_range_ends_after_its_last_key_and_before_the_next() -> None:
    ((start, end),) = key_ranges(columns_of("s", SIGNED), [7], [RowFilter("id", "=", (5,))])
    assert start == record_key(7, 5) < end < record_key(7, 6)
    assert end == record_key(7, encode_int(5)) + b"\xff"
