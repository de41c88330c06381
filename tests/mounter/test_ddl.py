"""Statements of a source and what becomes of them, in ddl.txt."""

from __future__ import annotations

from pathlib import Path

from tidemill.codec.mysql.entry import Query
from tidemill.events import Action, AddColumn, Column, DropColumn
from tidemill.mounter.ddl import read_change
from tidemill.routing import TableFilter

CASES = Path(__file__).with_name("ddl.txt")
FOLLOWED = TableFilter(["shop.*", "!shop.tmp_*"])


def test_the_cases(rewrite: bool) -> None:
    """Each is a statement in schema shop ("ansi_quotes" in front of it is said of the session)."""
    text = CASES.read_text().strip("\n")
    statements = [case.partition("\n----\n")[0] for case in text.split("\n\n")]
    made = "\n\n".join(f"{statement}\n----\n{outcome(statement)}" for statement in statements)
    if rewrite:
        CASES.write_text(made + "\n")
    assert made == text


def outcome(statement: str) -> str:
    text = statement.removeprefix("ansi_quotes ")
    change = read_change(Query("shop", text, 0.0, ansi_quotes=text != statement), FOLLOWED)
    if change is None:
        return "nothing"
    where = f"{change.schema}.{change.table}"
    return "\n".join(
        [f"refused: {change.refusal}"] if change.refusal else [f"{where} {line(a)}" for a in change.actions]
    )


def line(action: Action) -> str:
    match action:
        case AddColumn(column, after):
            place = {None: "", "": " first"}.get(after, f" after {after}")
            return f"+ {described(column)}{place}"
        case DropColumn(name):
            return f"- {name}"
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
