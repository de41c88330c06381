"""Rows events that MariaDB wrote, made by hand, cut short and damaged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.codec.mysql.layout import Layouts, TableLayout
from tidemill.codec.mysql.values import UNREADABLE, set_printer
from tidemill.emulator.mysql.packed import datetime_bytes, decimal_bytes, time_bytes
from tidemill.errors import SourceError
from tidemill.events import RowChange
from tidemill.testing.binlog_events import (
    BLOB,
    DELETE,
    INSERT,
    INT,
    TINY,
    UPDATE,
    VARCHAR,
    ColumnSpec,
    decimal,
    event,
    rows_event,
    table_map,
    varchar,
)

from .vectors import load

pytestmark = pytest.mark.usefixtures("decoder")

SMALL = table_map(INT._replace(nullable=False), VARCHAR, TINY)


def layout_of(payload: bytes) -> TableLayout:
    layouts = Layouts()
    return layouts.layout(layouts.number_of(payload))


def decode(payload: bytes, rows: bytes) -> list[RowChange]:
    return layout_of(payload).decode_rows(rows, 5, 4)


def row(number: int, text: str | None, tiny: int | None) -> list[bytes | None]:
    return [
        number.to_bytes(4, "little"),
        None if text is None else varchar(text),
        None if tiny is None else tiny.to_bytes(1, "little", signed=True),
    ]


# --- what the three operations make -----------------------------------------------------------------


def test_an_insert_has_rows_after_it() -> None:
    changes = decode(SMALL, rows_event(INSERT, [row(1, "a", -1), row(2, None, None)]))
    assert [(c.commit_ts, c.start_ts, c.op, c.before, c.after) for c in changes] == [
        (5, 4, "insert", None, (1, "a", -1)),
        (5, 4, "insert", None, (2, None, None)),
    ]
    assert changes[0].table is changes[1].table
    assert changes[0].table.full_name == "shop.t"
    assert changes[0].table.key == (0,)


def test_a_delete_has_rows_before_it() -> None:
    (change,) = decode(SMALL, rows_event(DELETE, [row(1, "a", -1)]))
    assert (change.op, change.before, change.after) == ("delete", (1, "a", -1), None)


def test_an_update_has_pairs_of_rows() -> None:
    images = [row(1, "a", 1), row(1, None, 2), row(2, "b", None), row(3, "c", 3)]
    changes = decode(SMALL, rows_event(UPDATE, images))
    assert [(c.op, c.before, c.after) for c in changes] == [
        ("update", (1, "a", 1), (1, None, 2)),
        ("update", (2, "b", None), (3, "c", 3)),
    ]


@pytest.mark.parametrize("kind", [INSERT, UPDATE, DELETE])
def test_the_newer_format_holds_the_same_rows_behind_a_longer_head(kind: int) -> None:
    images = [row(1, "a", 1), row(2, "b", None)]
    expected = decode(SMALL, rows_event(kind, images))
    assert decode(SMALL, rows_event(kind + 7, images, extra=b"")) == expected
    assert decode(SMALL, rows_event(kind + 7, images, extra=b"\0\1\2")) == expected


def test_an_event_without_a_checksum_is_the_same() -> None:
    made = rows_event(INSERT, [row(1, "a", 1)])
    unchecked = made[:9] + len(made).to_bytes(4, "little") + made[13:]
    assert decode(SMALL, unchecked) == decode(SMALL, made)


def test_unused_bits_may_be_set_or_not() -> None:
    made = bytearray(rows_event(INSERT, [row(1, "a", 1)]))
    columns, nulls = 28, 29
    assert (made[columns], made[nulls]) == (0b111, 0b1111_1000)
    made[columns], made[nulls] = 0xFF, 0
    assert decode(SMALL, bytes(made))[0].after == (1, "a", 1)


# --- values -----------------------------------------------------------------------------------------


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_any_pattern_of_nulls_over_any_number_of_columns(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from([INT, TINY, VARCHAR, BLOB]), min_size=1, max_size=40))
    nullable = data.draw(st.lists(st.booleans(), min_size=len(kinds), max_size=len(kinds)))
    columns = [kind._replace(nullable=may) for kind, may in zip(kinds, nullable, strict=True)]
    values = {
        INT: st.integers(-(2**31), 2**31 - 1),
        TINY: st.integers(-128, 127),
        VARCHAR: st.text(max_size=300),
        BLOB: st.binary(max_size=300),
    }
    a_row = st.tuples(
        *(values[k] | st.none() if may else values[k] for k, may in zip(kinds, nullable, strict=True))
    )
    rows = data.draw(st.lists(a_row, min_size=1, max_size=5))
    made = rows_event(INSERT, [encoded(kinds, one) for one in rows])
    assert [change.after for change in decode(table_map(*columns), made)] == rows


def encoded(kinds: Sequence[ColumnSpec], values: Sequence[Any]) -> list[bytes | None]:
    def one(kind: ColumnSpec, value: Any) -> bytes | None:
        if value is None:
            return None
        if kind is VARCHAR:
            return varchar(value)
        if kind is BLOB:
            return len(value).to_bytes(2, "little") + value
        return int(value).to_bytes(4 if kind is INT else 1, "little", signed=True)

    return [one(kind, value) for kind, value in zip(kinds, values, strict=True)]


@given(st.data())
@settings(deadline=None)
def test_a_decimal_of_any_size_is_exact(data: st.DataObject) -> None:
    digits = data.draw(st.integers(1, 65))
    scale = data.draw(st.integers(0, min(digits, 38)))
    number = data.draw(st.integers(-(10**digits) + 1, 10**digits - 1))
    value = Decimal(number).scaleb(-scale, Context(prec=65))
    (change,) = decode(
        table_map(decimal(digits, scale)), rows_event(INSERT, [[decimal_bytes(value, digits, scale)]])
    )
    assert repr(change.after) == repr((value,))


@given(
    scale=st.integers(0, 6),
    micros=st.integers(-(838 * 3600 + 59 * 60 + 59) * 10**6, (838 * 3600 + 59 * 60 + 59) * 10**6),
)
@settings(deadline=None)
def test_a_time_of_any_sign_and_fraction(scale: int, micros: int) -> None:
    step = 10 ** (6 - scale)
    value = timedelta(microseconds=micros // step * step)
    made = rows_event(INSERT, [[time_bytes(value, scale)]])
    assert decode(table_map(ColumnSpec(19, bytes((scale,)))), made)[0].after == (value,)


@given(scale=st.integers(0, 6), value=st.datetimes())
@settings(deadline=None)
def test_a_datetime_with_any_fraction(scale: int, value: datetime) -> None:
    value = value.replace(microsecond=value.microsecond - value.microsecond % 10 ** (6 - scale))
    made = rows_event(INSERT, [[datetime_bytes(value, scale)]])
    assert decode(table_map(ColumnSpec(18, bytes((scale,)))), made)[0].after == (value,)


def test_date_and_time_in_the_format_before_mysql_5_6() -> None:
    """Recorded with mysql56_temporal_format=OFF: TIME, DATE, DATETIME and TIMESTAMP."""
    payload = table_map(ColumnSpec(11), ColumnSpec(10), ColumnSpec(12), ColumnSpec(7))

    def values(*columns: str) -> tuple[Any, ...] | None:
        return decode(payload, rows_event(INSERT, [list(map(bytes.fromhex, columns))]))[0].after

    zero = ("000000", "000000", "0000000000000000", "00000000")
    moment = values("db2700", "22c80f", "45ece7335f120000", "a55d0d5e")
    assert repr(moment) == (
        "(datetime.timedelta(seconds=3723), datetime.date(2020, 1, 2), "
        "datetime.datetime(2020, 1, 2, 3, 4, 5), "
        "datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc))"
    )
    assert values(*zero) == (timedelta(), "0000-00-00", "0000-00-00 00:00:00", "0000-00-00 00:00:00")
    assert values("25d8ff", *zero[1:])[0] == -timedelta(seconds=3723)  # type: ignore[index]


# --- what can't be read -------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", load(), ids=lambda vector: vector.definition[:40])
def test_every_prefix_of_an_event_is_refused(vector: Any) -> None:
    layout = layout_of(vector.table_map)
    for whole in vector.events:
        step = 1 if len(whole) < 400 else 7
        for size in range(0, len(whole), step):
            with pytest.raises(SourceError, match=r"table shop_\d+\.v: a rows event can't be read"):
                layout.decode_rows(whole[:size], 1, 1)


@pytest.mark.parametrize("vector", load(), ids=lambda vector: vector.definition[:40])
def test_every_prefix_of_a_table_map_is_refused_or_a_table(vector: Any) -> None:
    """Missing optional fields at its end are not detected."""
    for size in range(len(vector.table_map)):
        with suppress(SourceError):
            assert len(layout_of(vector.table_map[:size]).table.columns) == 3


def test_bytes_that_are_no_value_are_refused_by_column() -> None:
    def refused(column: ColumnSpec, value: bytes) -> str:
        payload = table_map(INT, column)
        with pytest.raises(SourceError) as raised:
            decode(payload, rows_event(INSERT, [[bytes(4), value]]))
        return str(raised.value)

    assert refused(VARCHAR, b"\2\0\xc3\x28") == (
        "table shop.t: a rows event can't be read at column c1 (varchar), byte 34 of the event"
    )
    assert "c1 (varchar)" in refused(VARCHAR, b"\xff\xff")
    assert "c1 (date)" in refused(ColumnSpec(10), b"\xff\xff\xff")
    assert "c1 (time)" in refused(ColumnSpec(19, b"\0"), b"\x80\x0f\xff")
    assert "c1 (datetime)" in refused(ColumnSpec(18, b"\0"), b"\x99\xa5\x7f\xff\xff")
    assert "c1 (datetime)" in refused(ColumnSpec(18, b"\0"), b"\0\0\0\0\0")
    assert "c1 (datetime)" in refused(ColumnSpec(12), (20200102996161).to_bytes(8, "little"))
    assert "c1 (time)" in refused(ColumnSpec(11), (9999).to_bytes(3, "little"))


def test_a_null_in_a_column_that_is_not_null_is_refused() -> None:
    made = bytearray(rows_event(INSERT, [row(1, None, None)]))
    made[29] |= 1
    with pytest.raises(SourceError, match="at column c0"):
        decode(SMALL, bytes(made))


def test_bits_of_a_set_that_has_no_such_members_are_refused() -> None:
    printed = set_printer(("a", "b", "c"))
    assert printed(0b101) == "a,c"
    with pytest.raises(UNREADABLE):
        printed(0b1000)


def test_a_first_image_without_a_second_is_refused() -> None:
    with pytest.raises(SourceError, match="to its end"):
        decode(SMALL, rows_event(UPDATE, [row(1, "a", 1), row(1, "b", 1), row(2, "a", 1)]))


def test_an_event_with_bytes_left_over_is_refused() -> None:
    whole = rows_event(INSERT, [row(1, "a", 1)])
    with pytest.raises(SourceError, match="can't be read"):
        decode(SMALL, whole + b"\0")


def test_rows_without_all_columns_name_the_setting() -> None:
    made = bytearray(rows_event(INSERT, [row(1, None, 1)]))
    made[28] = 0b101
    with pytest.raises(SourceError, match=r"shop\.t: .*without column c1: .*binlog_row_image = FULL"):
        decode(SMALL, bytes(made))


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(SourceError, match="to its end"):
        decode(SMALL, rows_event(INSERT, [[bytes(4), None]]))


def test_an_event_of_another_type_is_refused() -> None:
    with pytest.raises(SourceError, match="binlog event 2 holds no rows"):
        decode(SMALL, event(2, bytes(30)))
