"""Snapshot rows in the text protocol."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.codec.mysql.layout import Layout, Layouts
from tidemill.codec.mysql.text_rows import select_expression
from tidemill.errors import SourceError
from tidemill.events import Column, Kind, Row, Table

from .vectors import Vector, load

pytestmark = pytest.mark.usefixtures("decoder")

LONGEST_PAYLOAD = 2**24 - 1


def layout_of(*kinds: Kind) -> Layout:
    layouts = Layouts()
    table = Table("shop", "t", tuple(Column(f"c{i}", kind) for i, kind in enumerate(kinds)))
    return layouts.layout(layouts.add_table(table))


def packets(*values: bytes | None) -> bytes:
    """One row, in as many packets as it takes."""
    payload = b"".join(lenenc(value) for value in values)
    made = b""
    while True:
        part, payload = payload[:LONGEST_PAYLOAD], payload[LONGEST_PAYLOAD:]
        made += len(part).to_bytes(3, "little") + b"\7" + part
        if len(part) < LONGEST_PAYLOAD:
            return made


def lenenc(value: bytes | None) -> bytes:
    if value is None:
        return b"\xfb"
    size = len(value)
    if size < 251:
        return bytes((size,)) + value
    first, width = (b"\xfc", 2) if size < 2**16 else (b"\xfd", 3) if size < 2**24 else (b"\xfe", 8)
    return first + size.to_bytes(width, "little") + value


def decode(layout: Layout, data: bytes) -> list[Row | None]:
    changes = layout.decode_text_rows(data, 5, 4)
    assert {(c.commit_ts, c.start_ts, c.op, c.before) for c in changes} <= {(5, 4, "insert", None)}
    return [change.after for change in changes]


def test_rows_follow_each_other() -> None:
    layout = layout_of("int", "varchar")
    data = packets(b"1", b"a") + packets(b"-2", None) + packets(None, "ß".encode())
    assert decode(layout, data) == [(1, "a"), (-2, None), (None, "ß")]
    assert decode(layout, b"") == []


@pytest.mark.parametrize("size", [0, 250, 251, 2**16 - 1, 2**16])
def test_text_of_any_length(size: int) -> None:
    assert decode(layout_of("text", "int"), packets(b"x" * size, b"1")) == [("x" * size, 1)]


@pytest.mark.parametrize("size", [2**24 - 6, 2**24 - 5, 2**24, 2**25 + 7])
def test_a_row_longer_than_a_packet(size: int) -> None:
    """At 2^24 - 6 bytes the payload is the longest of one packet, so an empty one follows."""
    layout = layout_of("blob", "int")
    data = packets(b"a", b"1") + packets(bytes(size), b"2") + packets(b"b", b"3")
    assert decode(layout, data) == [(b"a", 1), (bytes(size), 2), (b"b", 3)]


@given(st.lists(st.tuples(st.none() | st.integers(), st.none() | st.text(), st.none() | st.binary())))
@settings(deadline=None)
def test_any_rows(rows: list[tuple[int | None, str | None, bytes | None]]) -> None:
    def raw(number: int | None, text: str | None, data: bytes | None) -> bytes:
        return packets(
            None if number is None else str(number).encode(), None if text is None else text.encode(), data
        )

    assert decode(layout_of("bigint", "text", "blob"), b"".join(raw(*row) for row in rows)) == rows


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
            assert len(layout.decode_text_rows(data[:size], 1, 1)) == sorted(ends).index(size)
        else:
            with pytest.raises(SourceError, match=r"table shop_\d+\.v: a row of the snapshot"):
                layout.decode_text_rows(data[:size], 1, 1)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", b"x"),
        ("int", b""),
        ("decimal", b"1.2.3"),
        ("double", b"one"),
        ("varchar", b"\xff"),
        ("date", b"2020-13-01"),
        ("date", b"today"),
        ("time", b"10:99:00"),
        ("time", b"10"),
        ("datetime", b"2020-01-01 25:00:00"),
        ("timestamp", b"now"),
    ],
)
def test_text_that_is_no_value_is_refused_by_column(kind: Kind, text: bytes) -> None:
    with pytest.raises(SourceError) as raised:
        decode(layout_of("int", kind), packets(b"1", text))
    where = f"at column c1 ({kind}), byte 6 of its chunk"
    assert str(raised.value) == f"table shop.t: a row of the snapshot can't be read {where}"


def test_a_packet_of_another_length_than_its_columns_is_refused() -> None:
    for data in (packets(b"1", b"2"), b"\3\0\0\0\x011", b"\1\0\0\0\x011"):
        with pytest.raises(SourceError, match="to its end"):
            decode(layout_of("int"), data)


def test_names_are_quoted_and_inexact_types_are_selected_exactly() -> None:
    def selected(name: str, kind: Any) -> str:
        return select_expression(Column(name, kind))

    assert selected("a`b", "int") == "`a``b`"
    assert selected("f", "float") == "CAST(`f` AS DOUBLE)"
    assert selected("b", "bit") == "`b` + 0"
