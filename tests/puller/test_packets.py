from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.codec.native.library import native
from tidemill.dialects.mysql.packets import PacketCutter, RowCutter, whole_payloads, whole_rows

LONGEST = 0xFFFFFF
EOF = b"\xfe\x00\x00\x02\x00"
DEFINITION = b"\x03def" + b"\x00" * 20


def packets(payload: bytes, number: int = 0) -> bytes:
    """A payload as the server sends it."""
    parts = [payload[at : at + LONGEST] for at in range(0, len(payload) + 1, LONGEST)]
    return b"".join(
        len(part).to_bytes(3, "little") + bytes([(number + i) % 256]) + part for i, part in enumerate(parts)
    )


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    """Yield pieces of `data` with the lengths of `cuts`, then the rest."""
    for size in cuts:
        if data[:size]:
            yield data[:size]
        data = data[size:]
    if data:
        yield data


pytestmark = pytest.mark.usefixtures("decoder")

sizes = st.lists(st.integers(1, 40), max_size=60)
rows = st.lists(st.binary(max_size=300).map(lambda values: b"\0" + values), max_size=12)


@given(st.lists(st.binary(min_size=1, max_size=200), max_size=20), sizes)
def test_payloads_are_the_same_however_the_stream_is_split(payloads: list[bytes], cuts: list[int]) -> None:
    cutter = PacketCutter()
    stream = b"".join(packets(payload) for payload in payloads)
    assert [found for piece in pieces(stream, cuts) for found in cutter.feed(piece)] == payloads


def test_a_payload_of_more_than_16_mib_is_joined_from_its_packets() -> None:
    for size in LONGEST - 1, LONGEST, LONGEST + 5, 2 * LONGEST:
        payload = b"x" * size
        stream = packets(b"before") + packets(payload) + packets(b"after")
        for step in (len(stream), 1 << 20, LONGEST + 2):
            cutter = PacketCutter()
            found = [p for at in range(0, len(stream), step) for p in cutter.feed(stream[at : at + step])]
            assert found == [b"before", payload, b"after"]


def result(rows: list[bytes], columns: int = 1) -> bytes:
    head = [bytes([columns]), *[DEFINITION] * columns, EOF]
    return b"".join(packets(payload) for payload in [*head, *rows, EOF])


@given(rows, sizes)
def test_rows_are_the_same_however_the_stream_is_split(rows: list[bytes], cuts: list[int]) -> None:
    cutter = RowCutter()
    assert b"".join(map(cutter.feed, pieces(result(rows), cuts))) == b"".join(map(packets, rows))
    assert (cutter.done, cutter.rows, cutter.error) == (True, len(rows), b"")
    assert (cutter.is_described, cutter.head) == (True, [b"\1", DEFINITION])
    assert cutter.last_row == (packets(rows[-1]) if rows else b"")


def test_a_row_of_several_packets_stays_in_one_piece() -> None:
    # The second packet begins like an EOF and the third like an error, and neither is one.
    payload = b"\0" + b"a" * (LONGEST - 1) + b"\xfe" + b"b" * (LONGEST - 1) + b"\xff\x00"
    stream = b"".join(map(packets, [b"\x02", DEFINITION, DEFINITION, EOF, b"\0\0", payload, EOF]))
    cutter = RowCutter()
    step = LONGEST // 2
    found = [cutter.feed(stream[at : at + step]) for at in range(0, len(stream), step)]
    assert [piece for piece in found if piece] == [packets(b"\0\0"), packets(payload)]
    assert cutter.rows == 2
    assert cutter.last_row == packets(payload)
    assert cutter.done


def test_an_error_ends_a_result_before_its_rows_and_between_them() -> None:
    error = b"\xff\x84\x05#HY000Table definition has changed"
    for before in [], [b"\x01", DEFINITION, EOF], [b"\x01", DEFINITION, EOF, b"\0\0"]:
        cutter = RowCutter()
        cutter.feed(b"".join(map(packets, [*before, error])))
        assert (cutter.done, cutter.error) == (True, error)


heads = st.sampled_from([b"\xff", b"\xfe", b"\x00", b"\x02a", b""])
damaged = st.lists(st.tuples(st.integers(0, 9), heads, st.binary(max_size=9)), max_size=9).map(
    lambda found: b"".join(bytes([size, 0, 0, 0]) + head + rest for size, head, rest in found)
)


@pytest.mark.skipif(native is None, reason="the native decoder wasn't built")
@given(damaged, st.integers(0, 20))
def test_both_find_the_same_rows_in_any_bytes(data: bytes, start: int) -> None:
    start = min(start, len(data))
    assert native.whole_rows(data, start) == whole_rows(data, start)


@pytest.mark.skipif(native is None, reason="the native decoder wasn't built")
@given(
    st.binary(max_size=60) | st.lists(st.binary(max_size=5).map(packets)).map(b"".join), st.integers(0, 60)
)
def test_both_cut_the_same_payloads_of_any_bytes(data: bytes, cut: int) -> None:
    for some in data, data[:cut]:
        assert native.whole_payloads(some) == whole_payloads(some)


@pytest.mark.skipif(native is None, reason="the native decoder wasn't built")
def test_rows_start_in_the_data() -> None:
    for start in -1, 3:
        with pytest.raises(ValueError, match="the rows start outside the data"):
            native.whole_rows(b"ab", start)
