"""Requests per store that may be in their scan, as text. `--rewrite` writes down what goes out now."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.puller.tikv.feed.token_limiter import REGION_SCAN_LIMIT, TokenLimiter
from tidemill.testing import cases

CASES = Path(__file__).with_name("token_limiter.txt")


@pytest.mark.parametrize("case", cases.load(CASES), ids=cases.title)
def test_case(case, rewrite):
    case.expect(play(case.commands), rewrite)


def play(block: str) -> str:
    limiter: TokenLimiter[str] = TokenLimiter()
    out = []
    for line in block.splitlines():
        match line.split():
            case ["limit", number]:
                limiter = TokenLimiter(int(number))
            case ["add", store, *requests]:
                for request in requests:
                    limiter.add(store, request)
            case ["take"]:
                out.append(f"take: {' '.join(limiter.take()) or 'nothing'}")
            case ["acquire" | "release" as verb, store]:
                getattr(limiter, verb)(store)
            case ["show"]:
                out.append(f"show: {limiter.statistics()}")
    return "\n".join(out)


def test_the_limit_is_forty_a_store_and_at_least_one():
    limiter = TokenLimiter()
    for number in range(50):
        limiter.add(1, number)
    assert limiter.take() == list(range(REGION_SCAN_LIMIT)) == list(range(40))
    assert (limiter.used(1), limiter.waiting(1), limiter.used(2), limiter.waiting(2)) == (40, 10, 0, 0)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        TokenLimiter(0)


@given(limit=st.integers(1, 4), steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2))))
def test_each_store_gets_its_requests_in_order_and_never_more_than_its_limit(limit, steps):
    limiter = TokenLimiter(limit)
    added, sent, out = ([[], [], []] for _ in range(3))
    number = 0
    for verb, store in steps:
        if verb == 0:
            number += 1
            limiter.add(store, (store, number))
            added[store].append((store, number))
        elif verb == 1 and out[store]:
            out[store].pop()
            limiter.release(store)
        else:
            for request in limiter.take():
                sent[request[0]].append(request)
                out[request[0]].append(request)
            for other in range(3):
                assert len(out[other]) == limiter.used(other) <= limit
                assert sent[other] == added[other][: len(sent[other])]
                assert len(out[other]) == limit or sent[other] == added[other]
