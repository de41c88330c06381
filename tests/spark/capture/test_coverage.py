"""A check that a capture follows all tables of a query."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.chain.selection.tables import TablePatterns
from tidemill.spark.capture.answer import uncovered


@pytest.mark.parametrize(
    ("followed", "wanted", "lacking"),
    [
        (["shop.*"], ["shop.*"], ""),
        (["shop.*"], ["shop.orders"], ""),
        (["shop.*"], ["shop.orders", "shop.item_*"], ""),
        (["*.*"], ["shop.*", "blog.post"], ""),
        (["shop.*", "blog.post"], ["blog.post"], ""),
        (["shop.*", "!shop.tmp_*"], ["shop.*", "!shop.tmp_*"], ""),
        (["shop.*", "!shop.tmp_*"], ["shop.orders"], ""),
        (["shop.*", "!shop.tmp_*"], ["shop.item_*", "!shop.tmp_*"], ""),
        (["shop.*", "!shop.tmp_*"], ["shop.*"], "shop.*"),
        (["shop.*", "!shop.tmp_*"], ["shop.tmp_1"], "shop.tmp_1"),
        (["shop.*"], ["blog.post"], "blog.post"),
        (["shop.*"], ["*.*"], "*.*"),
        (["shop.?"], ["shop.*"], "shop.*"),
        (["shop.a*"], ["shop.*a"], "shop.*a"),
        (["shop.*", "!shop.tmp_1"], ["shop.~tmp_."], "shop.~tmp_."),
        (["shop.*"], ["shop.~tmp_."], ""),
    ],
)
def test_what_a_query_may_ask_for(followed, wanted, lacking):
    assert uncovered(followed, wanted) == lacking


PARTS = ["a", "b", "ab", "*", "a*", "*b", "?", "[ab]", "~a|ab", "~ab*"]
PATTERNS = st.builds(
    lambda no, schema, table: f"{no}{schema}.{table}",
    st.sampled_from(["", "", "!"]),
    *[st.sampled_from(PARTS)] * 2,
)
NAMES = ["a", "b", "ab", "ba", "c", "abc"]


@given(st.lists(PATTERNS, min_size=1, max_size=4), st.lists(PATTERNS, min_size=1, max_size=4))
def test_what_it_takes_for_covered_is_covered(followed, wanted):
    if uncovered(followed, wanted):
        return
    mine, theirs = TablePatterns.parse(followed), TablePatterns.parse(wanted)
    for schema, table in product(NAMES, NAMES):
        assert mine.matches(schema, table) or not theirs.matches(schema, table), (schema, table)
