"""Keys of chunks: their ranges, and their forms as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.events import KeyRange, OrderedKey
from tidemill.snapshot.key_bytes import decode_key, encode_key

INTEGERS = st.integers(-(2**63), 2**64)
TEXTS = st.text(st.characters() | st.sampled_from("\0\1\uffff"), max_size=6)


@given(st.lists(st.tuples(TEXTS, INTEGERS, TEXTS)))
def test_keys_sort_as_bytes_alike(keys: list[OrderedKey]) -> None:
    assert [decode_key(data) for data in sorted(map(encode_key, keys))] == sorted(keys)


@pytest.mark.parametrize(
    ("within", "has"),
    [
        (KeyRange(), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]),
        (KeyRange((), ()), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]),
        (KeyRange((1, 1), (2, 1)), [(1, 2), (2, 1)]),
        (KeyRange((1,), (2,)), [(2, 1), (2, 2)]),
        (KeyRange((1, 1), (2,)), [(1, 2), (2, 1), (2, 2)]),
        (KeyRange((2,)), [(3, 1)]),
        (KeyRange(None, (1, 1)), [(1, 1)]),
        (KeyRange((2,), (1,)), []),
    ],
)
def test_a_bound_of_some_parts_stands_for_all_keys_that_begin_with_them(
    within: KeyRange, has: list[OrderedKey]
) -> None:
    keys: list[OrderedKey] = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]
    assert [key for key in keys if within.has(key)] == has
