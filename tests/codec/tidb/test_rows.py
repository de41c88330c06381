"""Rows of made-up tables: what is written is read again, and what can't be read is refused by name."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from struct import pack, unpack
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tidemill.codec.tidb.column_type import ColumnFlag, Type
from tidemill.codec.tidb.datum import Flag
from tidemill.codec.tidb.key import record_key
from tidemill.codec.tidb.layout import build_row
from tidemill.codec.tidb.number import encode_int_cell
from tidemill.codec.tidb.old_row import join_row
from tidemill.codec.tidb.row_decoder import RowDecoder
from tidemill.codec.tidb.row_encoder import RowEncoder
from tidemill.codec.tidb.time import pack as pack_moment
from tidemill.errors import SourceError

from .tables import EVERY_TYPE, TEXT, clustered, column, table


def decimals(precision: int, scale: int):
    numbers = st.integers(-(10**precision) + 1, 10**precision - 1)
    return numbers.map(lambda number: Decimal(f"{number}e-{scale}"))


def moments(step: int):
    """Not finer than `step` microseconds."""
    every = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59))  # noqa: DTZ001
    return every.map(lambda m: m.replace(microsecond=m.microsecond // step * step, fold=0))


VALUES = (
    st.integers(-128, 127),
    st.integers(0, 65535),
    st.integers(-(1 << 23), (1 << 23) - 1),
    st.integers(0, (1 << 32) - 1),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(0, (1 << 64) - 1),
    st.floats(width=32, allow_nan=False),
    st.floats(allow_nan=False),
    decimals(30, 10),
    decimals(7, 0),
    st.dates(date(1, 1, 1)) | st.sampled_from(["0000-00-00", "2023-02-30", "2024-00-00"]),
    moments(1) | st.just("0000-00-00 00:00:00.000000"),
    moments(1000).map(lambda m: m.replace(tzinfo=UTC)) | st.just("0000-00-00 00:00:00.000"),
    st.timedeltas(-timedelta(hours=838), timedelta(hours=838)),
    st.just(0) | st.integers(1901, 2155),
    st.integers(0, (1 << 64) - 1),
    st.sampled_from(["", "a", "b", "ü"]),
    st.sampled_from(["", "p", "p,q", "q,r", "p,q,r"]),
    st.sampled_from(["null", "[1, -2.5, true]", '{"k": "ü", "kk": [{}]}', "18446744073709551615"]),
    st.text(max_size=100),
    st.binary(max_size=100),
    st.binary(min_size=4, max_size=4),
    st.text(max_size=100),
    decimals(18, 15),
    decimals(6, 6),
    decimals(5, 0),
)
ENCODERS = {
    (row_format, checksum): RowEncoder("s", EVERY_TYPE, row_format=row_format, checksum=checksum)
    for row_format in (1, 2)
    for checksum in (False, True)
}
DECODER = RowDecoder("s", EVERY_TYPE)
ROWS = st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), *(st.none() | values for values in VALUES))


@settings(deadline=None, max_examples=60)
@given(st.lists(ROWS, max_size=5), st.sampled_from([1, 2]), st.booleans())
def test_rows_of_every_type_come_back(rows, row_format, checksum):
    pairs = [ENCODERS[row_format, checksum].encode(row) for row in rows]
    decoded = DECODER.decode(pairs)
    assert decoded == rows
    assert list(map(repr, decoded)) == [repr(_without_minus_zero(row)) for row in rows]


def _without_minus_zero(row):
    """TiDB writes -0 as 0."""
    return tuple(value + 0.0 if isinstance(value, float) else value for value in row)


@settings(deadline=None, max_examples=60)
@given(ROWS, st.data())
def test_a_value_cut_off_is_refused_never_read_as_something_else(row, data):
    pair = ENCODERS[2, False].encode(row)
    cut = data.draw(st.integers(0, len(pair[1]) - 1))
    with pytest.raises(SourceError, match=rf"s\.t with the key {pair[0].hex()}"):
        DECODER.decode([(pair[0], pair[1][:cut])])


@settings(deadline=None, max_examples=60)
@given(ROWS, st.data())
def test_any_bytes_give_a_row_or_a_source_error(row, data):
    key, value = ENCODERS[2, False].encode(row)
    at = data.draw(st.integers(0, len(value) - 1))
    broken = value[:at] + bytes([data.draw(st.integers(0, 255))]) + value[at + 1 :]
    try:
        rows = DECODER.decode([(key, broken)])
    except SourceError as error:
        message = str(error)
    else:
        message = f"{key.hex()} {len(rows)} rows"
    assert key.hex() in message


def test_a_row_of_many_bytes_is_big():
    info = table(column(2, Type.LONG_BLOB), column(3, Type.LONG))
    row = (1, b"x" * 70_000, 5)
    key, value = RowEncoder("s", info).encode(row)
    assert value[1] & 1
    assert RowDecoder("s", info).decode([(key, value)]) == [row]


def test_a_row_of_many_columns_is_big():
    info = table(*(column(id_, Type.LONG) for id_ in range(2, 400)))
    row = tuple(range(399))
    key, value = RowEncoder("s", info).encode(row)
    assert value[1] & 1
    assert RowDecoder("s", info).decode([(key, value)]) == [row]


def test_a_column_that_the_row_lacks_has_the_default_of_its_beginning():
    old, new = table(), table(column(2, Type.VARCHAR, origin_default="dé", default="other", **TEXT))
    for row_format in (1, 2):
        pair = RowEncoder("s", old, row_format=row_format).encode((1,))
        assert RowDecoder("s", new).decode([pair]) == [(1, "dé")]


def test_a_not_null_column_without_default_that_the_row_lacks_has_its_zero():
    """While TiDB drops a column the rows that are inserted lack it, and the schema has it to the end."""
    key, *rest = EVERY_TYPE.columns
    dropped = replace(
        EVERY_TYPE,
        columns=(key, *(replace(each, flags=each.flags | ColumnFlag.NOT_NULL) for each in rest)),
    )
    for row_format in (1, 2):
        pair = RowEncoder("s", table(), row_format=row_format).encode((1,))
        ((_, *row),) = RowDecoder("s", dropped).decode([pair])
        assert row == [
            *[0] * 6, 0.0, 0.0, Decimal(0), Decimal(0), "0000-00-00", "0000-00-00 00:00:00.000000",
            "0000-00-00 00:00:00.000", timedelta(0), 0, 0, "a", "", "null", "", b"", bytes(4), "",
            *[Decimal(0)] * 3,
        ]  # fmt: skip
        ((_, *row),) = RowDecoder("s", EVERY_TYPE).decode([pair])
        assert row == [None] * len(rest)


def test_a_column_that_is_gone_is_skipped():
    old, new = table(column(2, Type.LONG), column(3, Type.LONG)), table(column(3, Type.LONG))
    for row_format in (1, 2):
        pair = RowEncoder("s", old, row_format=row_format).encode((1, 2, 3))
        assert RowDecoder("s", new).decode([pair]) == [(1, 3)]


def test_null_is_null_though_there_is_a_default():
    info = table(column(2, Type.LONG, origin_default="7", default="7"))
    for row_format in (1, 2):
        pair = RowEncoder("s", info, row_format=row_format).encode((1, None))
        assert RowDecoder("s", info).decode([pair]) == [(1, None)]


def test_a_column_that_is_not_public_yet_is_not_seen():
    writing = replace(column(2, Type.LONG), state=3)
    decoder = RowDecoder("s", table(writing))
    pair = record_key(7, 1), build_row({2: encode_int_cell(5)}, ())
    assert [column.name for column in decoder.table.columns] == ["id"]
    assert decoder.decode([pair]) == [(1,)]


def test_a_key_of_a_text_is_read_from_the_value():
    info = clustered(column(1, Type.VARCHAR, ColumnFlag.NOT_NULL, length=20, **TEXT), key=(0,))
    key, value = RowEncoder("s", info).encode(("a  ",))
    assert key == RowEncoder("s", info).encode(("a",))[0]  # spaces at the end don't count
    assert RowDecoder("s", info).decode([(key, value)]) == [("a  ",)]


def test_a_layout_seen_once_too_often_is_compiled_anew():
    columns = [column(id_, Type.LONG) for id_ in range(2, 12)]
    info, newer = table(*columns), table(*(replace(column, default="1") for column in columns))
    pairs, rows = [], []
    for mask in range(600):
        row = (mask, *(mask if mask >> bit & 1 else None for bit in range(10)))
        pairs.append(RowEncoder("s", info).encode(row))
        rows.append(row)
    decoder = RowDecoder("s", newer)
    assert decoder.decode(pairs * 2) == rows * 2
    assert len(decoder._readers) <= 256


FINER = (
    (Type.DATETIME, 3, pack_moment((2024, 2, 29, 1, 2, 3, 123_999)), datetime(2024, 2, 29, 1, 2, 3, 123_000)),  # noqa: DTZ001
    (Type.DATETIME, 0, pack_moment((2024, 2, 29, 1, 2, 3, 999_999)), datetime(2024, 2, 29, 1, 2, 3)),  # noqa: DTZ001
    (Type.TIMESTAMP, 5, pack_moment((2024, 2, 29, 1, 2, 3, 9)), datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)),
    (Type.TIME, 2, 1_239_999_999, timedelta(seconds=1.23)),
    (Type.TIME, 2, -1_239_999_999, timedelta(seconds=-1.23)),
    (Type.TIME, 6, -1, timedelta(0)),
    (Type.TIME, 6, 1_999, timedelta(microseconds=1)),
)
"""Type, scale, what is stored, what TiDB prints of it."""


@pytest.mark.parametrize(("type_", "scale", "stored", "value"), FINER)
def test_a_fraction_finer_than_its_column_is_cut_as_tidb_prints_it(type_, scale, stored, value):
    info = table(column(2, type_, decimal=scale))
    flag = Flag.VARINT if type_ == Type.TIME else Flag.UVARINT
    cell = encode_int_cell(stored) if type_ == Type.TIME else stored.to_bytes(8, "little")
    for row in (build_row({2: cell}, ()), join_row({2: (flag, stored)})):
        assert RowDecoder("s", info).decode([(record_key(7, 1), row)]) == [(1, value)]


@pytest.mark.parametrize("collation", ["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "gbk_bin"])
@pytest.mark.parametrize("row_format", [1, 2])
def test_with_the_old_collations_a_key_holds_the_text_and_the_value_does_not(collation, row_format):
    text = {"charset": "utf8mb4", "collation": collation}
    info = clustered(
        column(1, Type.VARCHAR, ColumnFlag.NOT_NULL, length=20, **text), column(2, Type.LONG), key=(0,)
    )
    encoder = RowEncoder("s", info, row_format=row_format, new_collations=False)
    key, value = encoder.encode(("Ab  ", 5))
    assert key == record_key(7, b"\1Ab  \0\0\0\0\xfb")
    assert b"Ab" not in value
    assert RowDecoder("s", info).decode([(key, value)]) == [("Ab  ", 5)]


@pytest.mark.parametrize(
    ("members", "values"), [(("a", ""), ["0", "a", ""]), (("0", ""), ["00", "0", ""]), (("a",), ["", "a"])]
)
def test_the_index_0_of_an_enum_is_no_member(members, values):
    info = table(column(2, Type.ENUM, elements=members, **TEXT))
    for row_format in (1, 2):
        encoder = RowEncoder("s", info, row_format=row_format)
        for index, value in enumerate(values):
            row = (
                build_row({2: bytes([index])}, ())
                if row_format == 2
                else join_row({2: (Flag.UVARINT, index)})
            )
            assert RowDecoder("s", info).decode([(record_key(7, 1), row)]) == [(1, value)]
            assert encoder.encode((1, value)) == (record_key(7, 1), row)


# --- refused -------------------------------------------------------------------------------------


def refused(info, value, key=None) -> str:
    good = RowEncoder("s", info).encode((1, *([None] * (len(info.columns) - 1))))
    with pytest.raises(SourceError) as raised:
        RowDecoder("s", info).decode([good, (key or good[0], value), good])
    assert "s.t" in str(raised.value)
    assert (key or good[0]).hex() in str(raised.value)
    return str(raised.value)


def test_a_row_of_an_unknown_format_is_refused():
    assert "format isn't known" in refused(table(), b"\x81\0\0\0\0\0")
    assert "format isn't known" in refused(table(), b"")
    assert "flags 0x10" in refused(table(), b"\x80\x10\0\0\0\0")


def test_a_column_of_an_unknown_type_is_refused():
    with pytest.raises(SourceError, match=r"column c2 of s\.t can't be read: .*225"):
        RowDecoder("s", table(replace(column(2, Type.LONG), type=225)))


def test_a_column_that_cannot_be_read_is_named():
    info = table(column(2, Type.LONG), column(3, Type.LONG, name="broken"))
    assert "column broken" in refused(info, build_row({2: b"\1", 3: b"\1\2\3"}, ()))
    assert "column broken" in refused(info, join_row({2: (Flag.VARINT, 1), 3: (Flag.COMPACT_BYTES, b"x")}))


@pytest.mark.parametrize(
    ("type_", "details", "cell"),
    [
        (Type.ENUM, {"elements": ("a",)}, b"\2"),
        (Type.SET, {"elements": ("a",)}, b"\2"),
        (Type.DATETIME, {}, b"\xff" * 8),
        (Type.DOUBLE, {}, b"\1" * 7),
        (Type.NEWDECIMAL, {"length": 5, "decimal": 2}, b"\5\2\x80"),
        (Type.NEWDECIMAL, {"length": 5, "decimal": 2}, b""),
        (Type.VARCHAR, TEXT, b"\xff"),
        (Type.JSON, {}, b"\x01\0\0\0\0"),
        (Type.JSON, {}, b"\x77"),
        (Type.BIT, {"length": 8}, b""),
    ],
)
def test_bytes_that_are_no_value_are_refused(type_, details, cell):
    info = table(column(2, type_, name="broken", **details))
    assert "column broken" in refused(info, build_row({2: cell}, ()))


def test_a_key_of_another_kind_is_refused():
    value = build_row({}, ())
    assert "key" in refused(table(), value, record_key(7, 1)[:-1])
    assert "key" in refused(table(), value, b"t" + b"\0" * 8 + b"_i" + b"\0" * 8)


def test_ends_that_run_backwards_are_refused():
    info = table(column(2, Type.VARCHAR, **TEXT), column(3, Type.VARCHAR, **TEXT))
    good = build_row({2: b"ab", 3: b"cd"}, ())
    assert "cut off" in refused(info, good.replace(b"\2\0\4\0", b"\5\0\4\0"))


def test_a_value_that_its_column_cannot_have_is_refused():
    info = table(column(2, Type.ENUM, elements=("a",), name="kind", **TEXT))
    with pytest.raises(ValueError, match=r"column kind can't be 'z': .*isn't one of a"):
        RowEncoder("s", info).encode((1, "z"))


# --- checksums -----------------------------------------------------------------------------------


def with_checksums(*checksums):
    info = table(column(2, Type.LONG))
    key = record_key(7, 1)
    right = crc32(pack("<QQ", 1, 5))
    return info, (key, build_row({2: b"\5"}, (), [right + offset for offset in checksums]))


@pytest.mark.parametrize("offsets", [(0,), (0, 1), (1, 0)])
def test_one_of_a_rows_checksums_must_be_right(offsets):
    info, pair = with_checksums(*offsets)
    assert RowDecoder("s", info).decode([pair]) == [(1, 5)]


@pytest.mark.parametrize("offsets", [(1,), (1, 2)])
def test_a_row_whose_checksums_are_wrong_is_refused(offsets):
    info, pair = with_checksums(*offsets)
    assert "checksum" in refused(info, pair[1], pair[0])
    assert RowDecoder("s", info, verify_checksums=False).decode([pair]) == [(1, 5)]


@pytest.mark.parametrize(
    ("version", "covers"),
    [(1, lambda key: key), (2, lambda key: key[11:]), (1, lambda key: key[11:])],
    ids=["v8.3, the key", "v8.4, the handle", "in between, the handle"],
)
def test_a_checksum_over_the_bytes_of_a_row_and_its_key(version, covers):
    info, (key, value) = with_checksums(0)
    covered = value[:-5] + bytes([version])
    right = crc32(covers(key), crc32(covered))
    assert RowDecoder("s", info).decode([(key, covered + pack("<I", right))]) == [(1, 5)]
    assert "checksum" in refused(info, covered + pack("<I", right ^ 1), key)


def test_a_checksum_of_the_newer_version_is_not_over_the_key():
    info, (key, value) = with_checksums(0)
    covered = value[:-5] + b"\2"
    assert "checksum" in refused(info, covered + pack("<I", crc32(key, crc32(covered))), key)


def test_a_checksum_of_an_unknown_version_is_refused():
    info, (key, value) = with_checksums(0)
    assert "version 3" in refused(info, value[:-5] + b"\3" + value[-4:], key)


def test_a_key_whose_column_is_in_no_row_is_refused():
    info = table()
    virtual = replace(info, columns=(replace(info.columns[0], generated="1", stored=False),))
    with pytest.raises(SourceError, match="isn't one of rows"):
        RowDecoder("s", virtual).decode([(record_key(7, 1), build_row({}, (), [0]))])


@settings(deadline=None, max_examples=100)
@given(ROWS, st.integers(1, len(EVERY_TYPE.columns) - 1), st.integers(1, 255))
def test_the_checksum_of_a_row_from_before_a_column_was_dropped_is_verified(row, dropped, other):
    left = tuple(c for at, c in enumerate(EVERY_TYPE.columns) if at != dropped)
    decoder = RowDecoder("s", replace(EVERY_TYPE, columns=left))
    key, value = ENCODERS[2, True].encode(row)
    assert decoder.decode([(key, value)]) == [row[:dropped] + row[dropped + 1 :]]
    broken = value[:-4] + pack("<I", unpack("<I", value[-4:])[0] ^ other)
    with pytest.raises(SourceError, match="checksum"):
        decoder.decode([(key, broken)])
