"""Conditions on rows: what is true of a row, and what isn't accepted."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tidemill.chain.selection.where import Where
from tidemill.errors import ConfigError, SinkError
from tidemill.events import Column, Table
from tidemill.testing.cases import Case, load, title

CASES = load(Path(__file__).parent / "where.txt")
_GENERAL = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci"}
TABLE = Table(
    "shop",
    "t",
    (
        Column("n", "int"),
        Column("m", "int"),
        Column("big", "bigint", unsigned=True),
        Column("price", "decimal", length=30, scale=2),
        Column("name", "varchar", length=40, **_GENERAL),
        Column("code", "char", length=4, charset="ascii", collation="ascii_general_ci"),
        Column("other", "varchar", length=9, charset="utf8mb4", collation="utf8mb4_unicode_ci"),
        Column("day", "date"),
        Column("at", "datetime", nullable=False),
        Column("seen", "timestamp"),
        Column("span", "time"),
        Column("size", "enum", members=("small", "large"), **_GENERAL),
        Column("raw", "varbinary", length=9),
        Column("ratio", "double"),
        Column("born", "year"),
        Column("doc", "json"),
    ),
)
PYTHON: dict[str, Any] = {
    "int": int,
    "bigint": int,
    "year": int,
    "decimal": Decimal,
    "double": float,
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
    "timestamp": lambda text: dt.datetime.fromisoformat(text + "+00:00"),
    "time": lambda text: dt.timedelta(hours=int(text[:2])),
    "varbinary": bytes.fromhex,
}


def rows(line: str) -> list[tuple[Any, ...]]:
    """Return the rows of a line such as "n=1,name='x' n=NULL"."""
    found = []
    for values in re.findall(r"((?:\w+=(?:X?'[^']*'|[^ ,]+),?)+)", line):
        given = dict(re.findall(r"(\w+)=(?:X?'([^']*)'|[^ ,]+)", values))
        given |= dict(re.findall(r"(\w+)=([^ ,'X][^ ,']*)", values))
        found.append(tuple(_value(column, given.get(column.name, "NULL")) for column in TABLE.columns))
    return found


def _value(column: Column, text: str) -> Any:
    return None if text == "NULL" else PYTHON.get(column.kind, str)(text)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_condition_is_evaluated_as_sql_does(case: Case, rewrite: bool) -> None:
    first, *conditions = case.commands.splitlines()
    given = rows(first)
    found = []
    for condition in conditions:
        try:
            test = Where(condition, "where").test(TABLE)
            truths = " ".join({True: "true", False: "false", None: "unknown"}[test(row)] for row in given)
            found.append(f"{condition:50} {truths}")
        except (ConfigError, SinkError) as error:
            found.append(str(error))
    case.expect("\n".join(found), rewrite)


def test_a_condition_nested_without_end_is_refused():
    with pytest.raises(ConfigError, match="nested more than 50 times"):
        Where("(" * 2000 + "n = 1" + ")" * 2000, "where")
