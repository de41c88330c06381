"""TiDB's binary JSON and its text."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.codec.tidb.json import (
    DATE,
    DATETIME,
    Duration,
    Moment,
    Opaque,
    Uint64,
    decode_json,
    encode_json,
)
from tidemill.codec.tidb.json_text import parse_json, print_float, print_json

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.integers(0, (1 << 64) - 1).map(Uint64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=200)
    | st.builds(Opaque, st.integers(0, 255), st.binary())
    | st.builds(Moment, st.sampled_from([DATE, DATETIME]), st.integers(0, (1 << 64) - 1))
    | st.builds(Duration, st.integers(-(1 << 50), 1 << 50), st.integers(0, 6))
)
TREES = st.recursive(
    LEAVES,
    lambda trees: st.lists(trees, max_size=4) | st.dictionaries(st.text(), trees, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60)
@given(TREES)
def test_every_value_comes_back(tree):
    assert decode_json(encode_json(tree)) == tree
    assert encode_json(decode_json(encode_json(tree))) == encode_json(tree)


@settings(deadline=None, max_examples=60)
@given(TREES, st.data())
def test_json_cut_off_is_refused(tree, data):
    encoded = encode_json(tree)
    with pytest.raises((ValueError, IndexError)):
        decode_json(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@settings(deadline=None, max_examples=60)
@given(
    st.recursive(st.none() | st.booleans() | st.text(), lambda t: st.lists(t) | st.dictionaries(st.text(), t))
)
def test_text_is_read_as_it_was_printed(tree):
    assert parse_json(print_json(tree)) == tree


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (123456789012345678.0, "123456789012345680"),
        (1e-6, "0.000001"),
        (-1.5e-5, "-0.000015"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (-1.25e300, "-1.25e+300"),
    ],
)
def test_a_float_is_printed_in_its_fewest_digits(value, text):
    assert print_float(value) == text
    assert float(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None]}, '{"a": [true, null], "b": 1}'),
        ('a"b\\c\n\t\x01\u2028<', '"a\\"b\\\\c\\n\\t\\u0001\\u2028<"'),
        (Uint64(18446744073709551615), "18446744073709551615"),
        (Opaque(253, b"abc"), '"base64:type253:YWJj"'),
        (Moment(DATE, 2024 << 50 | 2 << 46 | 29 << 41), '"2024-02-29"'),
        (
            Moment(DATETIME, 2024 << 50 | 2 << 46 | 29 << 41 | 23 << 36 | 59 << 30 | 58 << 24 | 500_000 << 4),
            '"2024-02-29 23:59:58.500000"',
        ),
        (Duration(-3_723_000_000_000, 0), '"-01:02:03.000000"'),
    ],
)
def test_values_are_printed_as_tidb_prints_them(value, text):
    assert print_json(decode_json(encode_json(value))) == text


def test_keys_are_stored_in_the_order_of_their_bytes():
    assert list(decode_json(encode_json({"b": 1, "ab": 2, "a": 3}))) == ["a", "ab", "b"]


def test_numbers_get_the_type_that_holds_them():
    assert encode_json(parse_json("9223372036854775807"))[0] == 0x09
    assert encode_json(parse_json("9223372036854775808"))[0] == 0x0A
    assert encode_json(parse_json("18446744073709551616"))[0] == 0x0B


@pytest.mark.parametrize("text", ["NaN", "{", "", "-Infinity"])
def test_what_is_not_json_is_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        parse_json(text)


@pytest.mark.parametrize("text", ["-0", "1e-7", "[1, 2.5, -3]", '{"a": {}}', "18446744073709551615"])
def test_text_comes_back_as_it_was(text):
    assert print_json(decode_json(encode_json(parse_json(text)))) == text


# --- bytes that aren't UTF-8 ---------------------------------------------------------------------


def test_bytes_that_are_not_utf8_are_printed_as_the_replacement_character():
    """A binary string in JSON is of the type of text up to v6.1, of its own later."""
    assert print_json(decode_json(bytes.fromhex("0c04") + b"\x03\0\xff\x10")) == r'"\u0003\u0000\ufffd\u0010"'
    assert print_json(decode_json(bytes.fromhex("0dfd04") + b"\x03\0\xff\x10")) == '"base64:type253:AwD/EA=="'
    assert print_json(decode_json(b"\x0c\x03\xe2\x82a")) == r'"\ufffd\ufffda"'  # one for each byte, as in Go


def test_two_keys_that_are_not_utf8_stay_two():
    keys = b"\xfe\xff"
    head = pack("<II", 2, 32) + pack("<IHIH", 30, 1, 31, 1) + pack("<BIBI", 4, 1, 4, 0)
    value = decode_json(b"\x01" + head + keys)
    assert print_json(value) == r'{"\ufffd": true, "\ufffd": null}'
    assert encode_json(value) == b"\x01" + head + keys


# --- made to do harm -----------------------------------------------------------------------------


def nested(depth: int) -> bytes:
    """Arrays in arrays, the innermost one empty."""
    size = 8 + 13 * depth
    return (
        b"\x03" + b"".join(pack("<IIBI", 1, size - 13 * k, 3, 13) for k in range(depth)) + pack("<II", 0, 8)
    )


@pytest.mark.parametrize("depth", [300, 10_000])
def test_json_is_read_however_deep_it_is_nested(depth):
    assert print_json(decode_json(nested(depth))) == "[" * (depth + 1) + "]" * (depth + 1)


def test_json_that_contains_itself_is_refused():
    with pytest.raises(ValueError, match="share"):
        decode_json(b"\x03" + pack("<IIBI", 1, 13, 3, 0))


def test_values_that_share_their_places_are_refused():
    """Each level has its next one twice: 2 ** 40 values if each were read."""
    depth, step = 40, 18
    size = 8 + step * depth
    levels = [pack("<IIBIBI", 2, size - step * k, 3, step, 3, step) for k in range(depth)]
    with pytest.raises(ValueError, match="share"):
        decode_json(b"\x03" + b"".join(levels) + pack("<II", 0, 8))


def test_keys_that_share_their_places_are_refused():
    count, text = 1000, b"k" * 1000
    start = 8 + count * 11
    size = start + len(text)
    head = pack("<II", count, size) + pack("<IH", start, len(text)) * count + pack("<BI", 4, 0) * count
    with pytest.raises(ValueError, match="key of JSON"):
        decode_json(b"\x01" + head + text)


def test_an_unknown_literal_is_refused():
    with pytest.raises(ValueError, match="literal 0x07"):
        decode_json(b"\x04\x07")


def test_text_that_is_nested_too_deep_is_refused():
    with pytest.raises(ValueError, match="too deep"):
        parse_json("[" * 100_000)
