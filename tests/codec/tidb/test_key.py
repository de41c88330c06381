"""Keys, datums and decimals as a real TiDB encodes them, both ways."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.codec.decimal import decode_decimal, encode_decimal
from tidemill.codec.tidb.datum import decode_datum, decode_datums, encode_datum
from tidemill.codec.tidb.key import (
    decode_bytes,
    decode_int,
    decode_record_key,
    encode_bytes,
    encode_int,
    record_key,
    record_prefix,
    record_span,
    table_prefix,
)

from .row_vectors import read

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


def vectors(kind: str):
    found = [vector for vector in read("keys") if vector["kind"] == kind]
    assert found
    return [(bytes.fromhex(vector["encoded_hex"]), vector) for vector in found]


def test_bytes_are_memory_comparable():
    for encoded, vector in vectors("bytes"):
        data = bytes.fromhex(vector["input"])
        assert encode_bytes(data) == encoded
        assert decode_bytes(encoded) == (data, len(encoded))


def test_keys_of_tables_and_their_parts():
    for encoded, vector in vectors("table_prefix"):
        assert table_prefix(int(vector["input"])) == encoded
        assert encode_bytes(encoded).hex() == vector["pd_key_hex"]
    for encoded, vector in vectors("record_prefix"):
        table_id = int(vector["input"])
        assert record_prefix(table_id) == encoded
        assert record_span(table_id) == (encoded, bytes.fromhex(vector["end_hex"]))
        assert encode_bytes(encoded).hex() == vector["pd_start_hex"]


def test_keys_of_rows():
    for encoded, vector in vectors("record_key"):
        _, table_id, _, handle = vector["input"].split()
        assert record_key(int(table_id), int(handle)) == encoded
        assert decode_record_key(encoded) == (int(table_id), int(handle))
        assert encode_bytes(encoded).hex() == vector["pd_key_hex"]


def test_clustered_keys_of_datums():
    for encoded, vector in vectors("common_handle"):
        table_id, handle = decode_record_key(encoded)
        assert isinstance(handle, bytes)
        assert handle.hex() == vector["handle_hex"]
        datums = decode_datums(handle)
        assert len(datums) == vector["num_cols"]
        assert b"".join(encode_datum(flag, bare) for flag, bare in datums) == handle
        assert record_key(table_id, handle) == encoded


def test_the_keys_of_an_index_are_not_those_of_rows():
    for encoded, _ in vectors("index_kv"):
        with pytest.raises(ValueError, match=encoded.hex()):
            decode_record_key(encoded)


def test_datums_of_every_kind():
    for encoded, _ in vectors("value_datum_v1"):
        flag, bare, end = decode_datum(encoded)
        assert end == len(encoded)
        assert encode_datum(flag, bare) == encoded


def test_decimals_of_every_size():
    for encoded, vector in vectors("decimal"):
        decimal = Decimal(vector["input"])
        precision, scale = encoded[0], encoded[1]
        assert encode_decimal(decimal, precision, scale) == encoded
        assert decode_decimal(encoded) == decimal
        assert -decode_decimal(encoded).as_tuple().exponent == scale


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=40), st.binary(max_size=40))
def test_encoded_bytes_keep_their_order(a, b):
    assert (encode_bytes(a) < encode_bytes(b)) == (a < b)
    assert decode_bytes(encode_bytes(a) + encode_bytes(b)) == (a, len(encode_bytes(a)))


@settings(deadline=None, max_examples=60)
@given(INT64, INT64)
def test_encoded_integers_keep_their_order(a, b):
    assert (encode_int(a) < encode_int(b)) == (a < b)
    assert decode_int(encode_int(a)) == a


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=30), st.data())
def test_encoded_bytes_cut_off_are_refused(data, draw):
    encoded = encode_bytes(data)
    with pytest.raises(ValueError, match="cut off"):
        decode_bytes(encoded[: draw.draw(st.integers(0, len(encoded) - 1))])


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_decimal_comes_back(data):
    precision = data.draw(st.integers(1, 65))
    scale = data.draw(st.integers(0, min(precision, 30)))
    number = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    decimal = Decimal(f"{number}e-{scale}")
    encoded = encode_decimal(decimal, precision, scale)
    assert decode_decimal(encoded) == decimal


def test_a_decimal_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"DECIMAL\(5,2\)"):
        encode_decimal(Decimal("1000"), 5, 2)
