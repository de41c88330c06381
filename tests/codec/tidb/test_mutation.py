"""Rows of pumps' binlogs are split exactly, and damage is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.codec.decimal import encode_decimal
from tidemill.codec.tidb.datum import Flag, datum_end, decode_datum, encode_datum
from tidemill.codec.tidb.json import encode_json
from tidemill.codec.tidb.key import record_key
from tidemill.codec.tidb.mutation import split_inserted, split_updated, without_handle
from tidemill.codec.tidb.old_row import join_row, split_row

integers = st.integers(-(2**63), 2**63 - 1)
bare = st.one_of(
    st.tuples(st.just(Flag.VARINT), integers),
    st.tuples(st.just(Flag.UVARINT), st.integers(0, 2**64 - 1)),
    st.tuples(st.just(Flag.COMPACT_BYTES), st.binary(max_size=200)),
    st.tuples(st.just(Flag.BYTES), st.binary(max_size=20)),
    st.tuples(st.just(Flag.INT), integers),
    st.tuples(st.just(Flag.DURATION), integers),
    st.tuples(st.just(Flag.FLOAT), st.floats(allow_nan=False)),
    st.tuples(st.just(Flag.NULL), st.none()),
    st.tuples(st.just(Flag.DECIMAL), st.decimals(-999, 999, places=2).map(lambda d: encode_decimal(d, 9, 2))),
    st.tuples(st.just(Flag.JSON), st.lists(st.integers(0, 9)).map(encode_json)),
)
rows = st.dictionaries(st.integers(1, 300), bare, min_size=1, max_size=8)


@given(bare, st.binary(max_size=9))
def test_the_end_of_a_datum_is_found_without_decoding_it(datum, rest):
    data = encode_datum(*datum)
    assert datum_end(data + rest, 0) == decode_datum(data + rest)[2] == len(data)


@given(rows, st.data())
def test_an_updated_row_is_split_between_its_images(before, data):
    after = {id_: data.draw(bare) for id_ in before}
    images = join_row(before), join_row(after)
    assert split_updated(b"".join(images)) == images


@given(rows)
def test_an_updated_row_without_its_end_is_refused(row):
    whole = join_row(row) * 2
    with pytest.raises((ValueError, LookupError)):
        split_row(b"".join(split_updated(whole[:-1])))


def test_images_of_different_columns_are_refused():
    one, other = {1: (Flag.VARINT, 1), 2: (Flag.VARINT, 2)}, {1: (Flag.VARINT, 1)}
    for pair in ((one, other), (other, one)):
        with pytest.raises((ValueError, LookupError)):
            split_updated(b"".join(map(join_row, pair)))


@given(integers, rows)
def test_an_inserted_row_has_its_handle_before_its_columns(handle, row):
    data = encode_datum(Flag.VARINT, handle) + join_row(row)
    assert split_inserted(data, 7, 0) == (record_key(7, handle), join_row(row))


def test_an_inserted_row_of_a_clustered_key_has_the_keys_columns_before_it():
    key = encode_datum(Flag.COMPACT_BYTES, b"a") + encode_datum(Flag.VARINT, -3)
    wanted = encode_datum(Flag.BYTES, b"a") + encode_datum(Flag.INT, -3)
    row = join_row({5: (Flag.NULL, None)})
    assert split_inserted(key + row, 7, 2) == (record_key(7, wanted), row)


def test_an_inserted_row_without_an_integer_handle_is_refused():
    with pytest.raises(ValueError, match="COMPACT_BYTES is in the place of the handle"):
        split_inserted(encode_datum(Flag.COMPACT_BYTES, b"a"), 7, 0)


@given(rows, integers)
def test_a_deleted_row_loses_only_its_hidden_handle(row, handle):
    data = join_row(
        {id_: datum for id_, datum in row.items() if datum[0] is not Flag.VARINT} or {1: (Flag.NULL, None)}
    )
    assert without_handle(data + encode_datum(Flag.VARINT, -1) + encode_datum(Flag.VARINT, handle)) == data
    assert without_handle(data) == data
