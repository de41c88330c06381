"""TiDB's binary JSON and its text."""

from __future__ import annotations

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
