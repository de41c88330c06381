"""Statements of rows, grouped into packets."""

from __future__ import annotations

import pytest

from tidemill.dialects.statement import Statement, joined, packets


def test_parts_share_statements_up_to_their_size() -> None:
    found = list(joined("IN (", ",", ["11", "22", "33"], ")", 5, [0, 2, 1]))
    assert found == [Statement("IN (11,22)", 2, invalid=2), Statement("IN (33)", 1, invalid=1)]
    assert list(joined("IN (", ",", [], ")", 5)) == []


@pytest.mark.parametrize("alone", [Statement("x", 1, invalid=1), Statement("x", 1, lines="1\n")])
def test_a_statement_with_invalid_values_or_lines_is_alone_in_its_packet(alone: Statement) -> None:
    one, two, three, four = (Statement(text, 1) for text in "abcd")
    statements = [one, two, alone, alone, three, four]
    assert list(packets(statements, 100)) == [[one, two], [alone], [alone], [three, four]]
    assert list(packets([one, two, three], 3)) == [[one, two], [three]]
