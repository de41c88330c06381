"""Everything that depends on a column's kind knows all kinds."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from tidemill.codec.mysql import known
from tidemill.codec.row_bytes import _TYPES
from tidemill.events import KINDS, Column, Kind, Table, key_order
from tidemill.sink.encoding import canal_columns, debezium_changes

ROOT = Path(__file__).parents[2]
ALL = frozenset(get_args(Kind))
FEW = 4
"""A match that names fewer kinds singles out some of those that its function is called with."""
OTHER_MATCHES = {"emulator/sql/column_types.py"}
"""Matches on the words of a statement; other words raise."""


def kinds_in(pattern: ast.pattern) -> set[str]:
    return {node.value for node in ast.walk(pattern) if isinstance(node, ast.Constant)}


def modules() -> list[Path]:
    outside = {"tests", "examples", "build", "docs", "setup.py"}
    paths = [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py"))]
    return [path for path in paths if not path.parts[0].startswith(".") and path.parts[0] not in outside]


def ends_in_assert_never(match: ast.Match) -> bool:
    (last,) = match.cases[-1].body[-1:]
    return ast.unparse(last).startswith("assert_never(")


def test_the_table_has_each_kind():
    assert set(KINDS) == ALL


@pytest.mark.parametrize(
    "by_kind",
    [known._TYPES, _TYPES, canal_columns._TYPES, debezium_changes._JDBC_TYPES],
    ids=["binlog", "packed rows", "canal", "debezium"],
)
def test_a_table_by_kind_is_complete(by_kind):
    assert set(by_kind) == ALL


def test_a_match_on_kinds_ends_in_assert_never():
    open_ended = []
    for path in modules():
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            of_pair = isinstance(node, ast.Match) and isinstance(node.subject, ast.Tuple)
            if isinstance(node, ast.Match) and not of_pair and str(path) not in OTHER_MATCHES:
                named = set[str]().union(*[kinds_in(case.pattern) for case in node.cases])
                if len(named) >= FEW and named <= ALL and not ends_in_assert_never(node):
                    open_ended.append(f"{path}:{node.lineno}")
    assert open_ended == []


@pytest.mark.parametrize("kind", sorted(ALL))
def test_the_order_of_a_kind_is_that_of_its_keys(kind):
    column = Column("id", kind, length=4, members=("a", "b"), collation="utf8mb4_bin")
    order = key_order(Table("shop", "t", (column,), (0,)))
    assert (order is None) == (KINDS[kind].order == "unknown")
