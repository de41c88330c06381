"""Snapshot rows in the binary protocol."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.codec.mysql.field import Type
from tidemill.codec.mysql.layout import Layouts, TableLayout
from tidemill.codec.mysql.result_rows import check_types, select_expression
from tidemill.errors import SourceError
from tidemill.events import Column, Kind, Row, Table

from .vectors import Vector, load

pytestmark = pytest.mark.usefixtures("decoder")

LONGEST_PAYLOAD = 2**24 - 1


def layout_of(*kinds: Kind) -> TableLayout:
    layouts = Layouts()
    table = Table("shop", "t", tuple(Column(f"c{i}", kind) for i, kind in enumerate(kinds)))
    return layouts.layout(layouts.add_table(table))


def packets(*values: bytes | None) -> bytes:
    """One row, in as many packets as it takes; values have their length before them where they need one."""
    nulls = sum(1 << number + 2 for number, value in enumerate(values) if value is None)
    head = b"\0" + nulls.to_bytes((len(values) + 9) // 8, "little")
    payload = head + b"".join(value for value in values if value is not None)
    made = b""
    while True:
        part, payload = payload[:LONGEST_PAYLOAD], payload[LONGEST_PAYLOAD:]
        made += len(part).to_bytes(3, "little") + b"\7" + part
        if len(part) < LONGEST_PAYLOAD:
            return made


def lenenc(value: bytes) -> bytes:
    size = len(value)
    if size < 251:
        return bytes((size,)) + value
    first, width = (b"\xfc", 2) if size < 2**16 else (b"\xfd", 3) if size < 2**24 else (b"\xfe", 8)
    return first + size.to_bytes(width, "little") + value


def number(value: int) -> bytes:
    return value.to_bytes(4, "little", signed=True)


def decode(layout: TableLayout, data: bytes) -> list[Row | None]:
    changes = layout.result_run(data, 5, 4).changes()
    assert {(c.commit_ts, c.start_ts, c.op, c.before) for c in changes} <= {(5, 4, "insert", None)}
    return [change.after for change in changes]


def test_rows_follow_each_other() -> None:
    layout = layout_of("int", "varchar")
    data = packets(number(1), lenenc(b"a")) + packets(number(-2), None) + packets(None, lenenc("ß".encode()))
    assert decode(layout, data) == [(1, "a"), (-2, None), (None, "ß")]
    assert decode(layout, b"") == []


@pytest.mark.parametrize("size", [0, 250, 251, 2**16 - 1, 2**16])
def test_text_of_any_length(size: int) -> None:
    data = packets(lenenc(b"x" * size), number(1))
    assert decode(layout_of("text", "int"), data) == [("x" * size, 1)]


@pytest.mark.parametrize("size", [2**24 - 11, 2**24 - 10, 2**24, 2**25 + 7])
def test_a_row_longer_than_a_packet(size: int) -> None:
    """At 2^24 - 11 bytes the payload is the longest of one packet, so an empty one follows."""
    layout = layout_of("blob", "int")
    rows = [(b"a", 1), (bytes(size), 2), (b"b", 3)]
    assert decode(layout, b"".join(packets(lenenc(raw), number(n)) for raw, n in rows)) == rows


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.text(), st.none() | st.binary()
        )
    )
)
@settings(deadline=None)
def test_any_rows(rows: list[tuple[int | None, str | None, bytes | None]]) -> None:
    def stored(value: int | None, text: str | None, data: bytes | None) -> bytes:
        return packets(
            None if value is None else number(value),
            None if text is None else lenenc(text.encode()),
            None if data is None else lenenc(data),
        )

    assert decode(layout_of("int", "text", "blob"), b"".join(stored(*row) for row in rows)) == rows


def test_a_row_may_have_many_columns() -> None:
    """Of 6 columns the NULL bits are in one byte, of 7 in two."""
    for count in (6, 7, 14, 15, 300):
        layout = layout_of(*["int"] * count)
        row = tuple(None if i % 3 == 1 else i for i in range(count))
        assert decode(layout, packets(*[None if i is None else number(i) for i in row])) == [row]


@pytest.mark.parametrize("vector", load(), ids=lambda vector: vector.definition[:40])
def test_every_prefix_that_is_not_whole_rows_is_refused(vector: Vector) -> None:
    layouts = Layouts()
    table = layouts.layout(layouts.number_of(vector.table_map)).table
    layout = layouts.layout(layouts.add_table(table))
    data = vector.packets
    ends = {0}
    while (last := max(ends)) < len(data):
        ends.add(last + 4 + int.from_bytes(data[last : last + 3], "little"))
    for size in range(0, len(data), 1 if len(data) < 400 else 7):
        if size in ends:
            assert len(layout.result_run(data[:size], 1, 1).changes()) == sorted(ends).index(size)
        else:
            with pytest.raises(SourceError, match=r"table shop_\d+\.v: a row of the snapshot"):
                layout.result_run(data[:size], 1, 1).changes()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bit", b"123456789"),
        ("decimal", b"1.2.3"),
        ("varchar", b"\xff"),
        ("date", bytes((0xE4, 7, 13, 1))),
        ("date", b"\0"),
        ("time", bytes((0, 0, 0, 0, 0, 10, 99, 0))),
        ("time", bytes((0, 35, 0, 0, 0, 0, 0, 0))),
        ("time", b"\0"),
        ("datetime", bytes((0xE4, 7, 1, 1, 25, 0, 0))),
        ("timestamp", b"\0"),
    ],
)
def test_bytes_that_are_no_value_are_refused_by_column(kind: Kind, value: bytes) -> None:
    with pytest.raises(SourceError) as raised:
        decode(layout_of("int", kind), packets(number(1), lenenc(value)))
    where = f"at column c1 ({kind}), byte 10 of its chunk; its chunk has ts 5"
    assert str(raised.value) == f"table shop.t: a row of the snapshot can't be read {where}"


def test_a_packet_of_another_length_than_its_columns_is_refused() -> None:
    long, short = packets(number(1), number(2)), packets(number(1)[:3])
    for data in (long, b"\1" + packets(number(1))[1:], b"\6\0\0\0\1\0" + number(1)):
        with pytest.raises(SourceError, match="to its end"):
            decode(layout_of("int"), data)
    with pytest.raises(SourceError, match="at column c0"):
        decode(layout_of("int"), short)


def test_names_are_quoted_and_an_enum_without_a_member_differs_from_an_empty_one() -> None:
    assert select_expression(Column("a`b", "int")) == "`a``b`"
    found = select_expression(Column("e", "enum", members=("", "0")))
    assert found == "IF(`e` + 0 = 0, '00', `e`)"


@pytest.mark.parametrize(
    ("kind", "type_", "is_fit"),
    [
        ("int", Type.LONG, True),
        ("int", Type.LONGLONG, False),
        ("mediumint", Type.INT24, True),
        ("float", Type.DOUBLE, False),
        ("date", Type.DATETIME, False),
        ("datetime", Type.DATETIME, True),
        ("varchar", Type.VAR_STRING, True),
        ("bit", Type.BIT, True),
        ("bit", Type.LONGLONG, False),
        ("decimal", Type.NEWDECIMAL, True),
        ("decimal", Type.TIME, False),
    ],
)
def test_a_column_of_another_type_in_the_result_is_refused(kind: Kind, type_: Type, is_fit: bool) -> None:
    table = Table("shop", "t", (Column("c", kind),))
    if is_fit:
        check_types(table, [type_])
        return
    with pytest.raises(SourceError, match=rf"table shop.t: column c \({kind}\) came as type {type_}"):
        check_types(table, [type_])


def test_a_result_of_another_number_of_columns_is_refused() -> None:
    with pytest.raises(SourceError, match=r"table shop.t: 2 columns came, not 1"):
        check_types(Table("shop", "t", (Column("c", "int"),)), [Type.LONG, Type.LONG])
