"""Statements of a source and what becomes of them, in ddl.txt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemill.codec.mysql import tokens
from tidemill.codec.mysql.entry import Query
from tidemill.events import Action, AddColumn, Column, DropColumn
from tidemill.mounter.mysql.ddl import read_change
from tidemill.puller.mysql.zone import offset_of
from tidemill.routing import TableFilter
from tidemill.testing import cases

CASES = Path(__file__).with_name("ddl.txt")
FOLLOWED = TableFilter(["shop.*", "!shop.tmp_*"])


@pytest.mark.parametrize("case", cases.load(CASES), ids=cases.title)
def test_case(case: cases.Case, rewrite: bool) -> None:
    """Each is a statement in schema shop; what stands in front of it in brackets is said of its session."""
    case.expect(outcome(case.given), rewrite)


def outcome(statement: str) -> str:
    said, text = "", statement
    if statement.startswith("["):
        said, _, text = statement[1:].partition("] ")
    change = read_change(Query("shop", text, 1_700_000_000, **session(said)), FOLLOWED)
    if change is None:
        return "nothing"
    where = f"{change.schema}.{change.table}"
    return "\n".join(
        [f"refused{' where it is there' if change.if_exists else ''}: {change.refusal}"]
        if change.refusal
        else [f"{where} {line(a)}" for a in change.actions]
    )


def session(said: str) -> dict[str, Any]:
    """Modes of sql_mode, "implicit timestamps", and "at" a time zone."""
    made: dict[str, Any] = {"sql_mode": tokens.STRICT}
    for word in filter(None, said.split(", ")):
        if word == "implicit timestamps":
            made["explicit_timestamps"] = False
        elif word == "converts_strings":
            made[word] = True
        elif word == "NOT_STRICT":
            made["sql_mode"] &= ~tokens.STRICT
        elif word.startswith("at "):
            zone = word.removeprefix("at ")
            offset = None if zone == "SYSTEM" else offset_of(zone, 1_700_000_000)
            made |= {"time_zone": zone, "utc_offset_seconds": offset}
        else:
            made["sql_mode"] |= getattr(tokens, word)
    return made


def line(action: Action) -> str:
    match action:
        case AddColumn(column, after, unless_exists):
            place = {None: "", "": " first"}.get(after, f" after {after}")
            return f"+ {described(column)}{place}{' unless it exists' if unless_exists else ''}"
        case DropColumn(name, if_exists):
            return f"- {name}{' if it exists' if if_exists else ''}"
    raise TypeError(action)


def described(column: Column) -> str:
    """The name, and whatever isn't as in a plain column."""
    plain = Column("", column.kind)
    differing = [
        f"{field}={getattr(column, field)!r}"
        for field in column.__struct_fields__[2:]
        if getattr(column, field) != getattr(plain, field)
    ]
    return " ".join([column.name, column.kind, *differing])
