"""The least ts over a table's keys: cases as text, and at random against a ts for every key.

After each `forward` comes the frontier. `--rewrite` writes down what comes out now.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.errors import InvariantViolated
from tidemill.puller.frontier import Frontier
from tidemill.puller.tikv.span import Span
from tidemill.testing import cases

CASES = Path(__file__).with_name("frontier.txt")


@pytest.mark.parametrize("case", cases.load(CASES), ids=cases.title)
def test_case(case, rewrite):
    case.expect(play(case.commands), rewrite)


def play(block: str) -> str:
    frontier = None
    out = []
    for line in block.splitlines():
        match line.split():
            case ["new", *spans, "at", ts]:
                frontier = Frontier([span(text) for text in spans], int(ts))
            case ["forward", keys, ts]:
                try:
                    frontier.forward(span(keys), int(ts))
                    out.append(str(frontier.ts))
                except InvariantViolated as error:
                    out.append(str(error))
            case ["show"]:
                out.append(f"{len(frontier)} stretches at {frontier.ts}")
    return "\n".join(out)


def span(text: str) -> Span:
    start, _, end = text.partition("-")
    return Span(start.encode(), end.encode())


def test_spans_that_overlap_are_refused():
    with pytest.raises(ValueError, match="spans overlap"):
        Frontier([span("a-c"), span("b-d")])


KEYS = 16


@settings(max_examples=300, deadline=None)
@given(
    cuts=st.lists(st.integers(0, KEYS), min_size=2, max_size=6, unique=True).map(sorted),
    steps=st.lists(
        st.tuples(st.integers(0, KEYS), st.integers(0, KEYS), st.integers(1, 99), st.booleans()), max_size=40
    ),
)
def test_it_is_the_least_ts_of_any_key_through_splits_and_merges(cuts, steps):
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    frontier = Frontier([Span(bytes([a]), bytes([b])) for a, b in spans], 5)
    every = {at: 5 for a, b in spans for at in range(a, b)}
    for start, end, ts, ask in steps:
        part = Span(bytes([start]), bytes([end]))
        if any(a <= start < end <= b for a, b in spans) or (
            start < end and all(at in every for at in range(start, end))
        ):
            frontier.forward(part, ts)
            every.update(dict.fromkeys(range(start, end), ts))
        else:
            with pytest.raises(InvariantViolated):
                frontier.forward(part, ts)
        if ask:
            assert frontier.ts == min(every.values())
    assert frontier.ts == min(every.values())
