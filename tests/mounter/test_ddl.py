"""Statements of a source and what becomes of them: in ddl.txt without a catalog of the tables before them, in
known.txt with one, in left_out.txt where generated columns are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.mysql import tokens
from tidemill.codec.mysql.collation import Charset
from tidemill.codec.mysql.entry import Query
from tidemill.dialects.mysql.zone import offset_of
from tidemill.events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Column,
    CreateTable,
    DropColumn,
    DropTable,
    RenameTables,
    Table,
    TruncateTable,
)
from tidemill.mounter.mysql.catalog import Catalog
from tidemill.mounter.mysql.change import Change
from tidemill.mounter.mysql.ddl import Statements
from tidemill.testing import cases

CASES = Path(__file__).with_name("ddl.txt")
KNOWN = Path(__file__).with_name("known.txt")
LEFT_OUT = Path(__file__).with_name("left_out.txt")
UTF8 = Charset("utf8mb4", "utf8mb4_general_ci")
FOLLOWED = TablePatterns.parse(["shop.*", "!shop.tmp_*"])


@pytest.mark.parametrize("case", cases.load(CASES), ids=cases.title)
def test_a_statement_about_unknown_tables(case: cases.Case, rewrite: bool) -> None:
    """Each is a statement in schema shop; what stands in front of it in brackets is said of its session."""
    case.expect(outcome(case.given, Statements(FOLLOWED, Catalog())), rewrite)


@pytest.mark.parametrize("case", cases.load(KNOWN), ids=cases.title)
def test_statements_about_known_tables(case: cases.Case, rewrite: bool) -> None:
    """Statements one after another, each in its line, from an empty server on. The outcome is that of the
    last one, and the tables then."""
    case.expect("\n".join(after_all(case.commands, Catalog())), rewrite)


@pytest.mark.parametrize("case", cases.load(LEFT_OUT), ids=cases.title)
def test_statements_while_generated_columns_are_left_out(case: cases.Case, rewrite: bool) -> None:
    """As above; the tables are also shown with the columns that are left out."""
    catalog = Catalog()
    found = after_all(case.commands, catalog, copies_generated=False)
    found += [f"whole {shown(known.complete)}" for known in catalog.known() if known.whole]
    case.expect("\n".join(found), rewrite)


def after_all(commands: str, catalog: Catalog, **options: Any) -> list[str]:
    """The outcome of the last statement, and the tables then."""
    catalog.learn([("shop", UTF8)], {"utf8mb4": "utf8mb4_general_ci", "latin1": "latin1_swedish_ci"})
    statements = Statements(FOLLOWED, catalog, **options)
    *_, found = [outcome(statement, statements) for statement in commands.splitlines()]
    return [found, *map(shown, catalog.tables())]


def outcome(statement: str, statements: Statements) -> str:
    said, text = "", statement
    if statement.startswith("["):
        said, _, text = statement[1:].partition("] ")
    changes = statements.changes(Query("shop", text, 1_700_000_000, **session(said)))
    return "\n".join(written for change in changes for written in written_of(change)) or "nothing"


def written_of(change: Change) -> list[str]:
    where = f"{change.schema}.{change.table}"
    if change.refusal:
        return [f"refused: {change.refusal}"]
    if change.reload:
        return [f"reload ({change.kind}): {change.reload}"]
    return [f"{where} {line(action)}" for action in change.actions]


def shown(table: Table) -> str:
    key = [table.columns[i].name for i in table.key]
    charset = f" {table.collation}" if table.collation else ""
    return f"= {table.full_name} ({', '.join(column.name for column in table.columns)}) key {key}{charset}"


def session(said: str) -> dict[str, Any]:
    """Modes of sql_mode, "implicit timestamps", "failed", and "at" a time zone."""
    made: dict[str, Any] = {"sql_mode": tokens.STRICT}
    for word in filter(None, said.split(", ")):
        if word == "implicit timestamps":
            made["explicit_timestamps"] = False
        elif word == "failed":
            made["error"] = 1067
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
        case ChangeColumn(name, column, before, after):
            assert before is not None
            assert before.name == name
            place = {None: "", "": " first"}.get(after, f" after {after}")
            return f"{described(before)} -> {described(column)}{place}"
        case ChangeKey(columns):
            return f"key {columns}"
        case CreateTable(table, replaces):
            columns = ", ".join(map(described, table.columns))
            return f"created{' again' if replaces else ''}: {columns}"
        case DropTable():
            return "dropped"
        case TruncateTable():
            return "emptied"
        case RenameTables(pairs):
            return f"renamed: {', '.join(f'{a}.{b} to {c}.{d}' for (a, b), (c, d) in pairs)}"
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


def test_names_are_in_lower_case_if_the_server_stores_them_so() -> None:
    catalog = Catalog()
    catalog.learn([("shop", UTF8)], {}, folds_names=True)
    statements = Statements(FOLLOWED, catalog)
    for statement, wanted in [
        ("CREATE TABLE Shop.ORDERS (Id INT)", "shop.orders created: Id int"),
        ("CREATE TABLE T2 LIKE Orders", "shop.t2 created: Id int"),
        ("ALTER TABLE Orders RENAME TO TMP_orders", "shop.orders dropped"),
        ("DROP DATABASE SHOP", "shop.t2 dropped"),
    ]:
        assert outcome(statement, statements) == wanted


@pytest.mark.parametrize(
    "statement", ["TRUNCATE mysql.slow_log", "CREATE TABLE sys.t (a INT)", "DROP DATABASE sys"]
)
def test_the_server_s_own_tables_are_never_followed(statement: str) -> None:
    assert outcome(statement, Statements(TablePatterns.parse(["*.*"]), Catalog())) == "nothing"
