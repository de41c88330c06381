"""Rows of a shard in the columns of a merged table that differs."""

from __future__ import annotations

import pytest

from tidemill.events import Column, Row, Table
from tidemill.sharding.fit import MergedColumns
from tidemill.sharding.shard import Shard


def columns(names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "int", default="7") for name in names)


@pytest.mark.parametrize(
    ("have", "wanted", "row", "fitted"),
    [
        ("ab", "abc", (1, 2), (1, 2, 7)),
        ("ab", "bca", (1, 2), (2, 7, 1)),
        ("ab", "b", (1, 2), (2,)),
        ("a", "b", (1,), (7,)),
    ],
)
def test_a_row_gets_missing_columns_and_loses_others(have: str, wanted: str, row: Row, fitted: Row) -> None:
    fit = MergedColumns(
        Shard("", "a", "x"), Table("a", "x", columns(have), (0,)), Table("t", "all", columns(wanted), ())
    )
    assert fit.rows([row, None]) == [fitted, None]
