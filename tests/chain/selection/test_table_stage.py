"""Renames as the sinks see them that follow only some of the tables."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tidemill.chain.selection.rule import only
from tidemill.chain.selection.stage import SelectionStage
from tidemill.chain.selection.tables import TablePatterns
from tidemill.events import Chunk, Ddl, DropTable, RenameTables, Rows, Run, Table, Transaction
from tidemill.sink.table_load import tables_of
from tidemill.testing.changes import ORDERS, alter, create, transaction

SWAP = "RENAME TABLE a TO x, b TO a, x TO b"


def rename(*names: str) -> Ddl:
    pairs = tuple((("s", old), ("s", new)) for old, new in (name.split(">") for name in names))
    return replace(alter(7, ORDERS, SWAP, RenameTables(pairs)), schema="s", table=pairs[0][0][1])


def cut(ddl: Ddl, *tables: str) -> list[str]:
    """Describe the items that a sink of these tables gets."""
    parts = SelectionStage([only(TablePatterns.parse(tables))]).apply([ddl])
    assert [part.last for part in parts] == [False] * (len(parts) - 1) + [ddl.last]
    assert [part.position for part in parts] == [""] * (len(parts) - 1) + [ddl.position]
    assert {(part.commit_ts, part.start_ts, part.source) for part in parts} == {(7, 0, "src")}
    return [described(part) for part in parts]


def described(part) -> str:
    if not isinstance(part, Ddl):
        return "nothing"
    match part.actions:
        case ():
            return f"load {part.full_name}: {part.reload}"
        case (DropTable(),):
            return f"drop {part.full_name}"
        case (RenameTables(pairs),):
            assert (part.schema, part.table) == pairs[0][0]
            return " ".join(["rename", *(f"{old[1]}>{new[1]}" for old, new in pairs)])
    raise AssertionError(part)


@pytest.mark.parametrize(
    ("ddl", "tables", "found"),
    [
        (rename("a>b", "b>a"), ["s.*"], ["rename a>b b>a"]),
        (rename("a>b"), ["s.c"], ["nothing"]),
        (rename("a>b"), ["s.a"], ["drop s.a"]),
        (rename("a>b"), ["s.b"], [f"load s.b: s.b was renamed into the tables of this sink: {SWAP}"]),
        (rename("a>old", "new>a"), ["s.*", "!s.old"], ["drop s.a", "rename new>a"]),
        (
            rename("a>old", "new>a", "c>d"),
            ["s.a", "s.c", "s.d"],
            ["drop s.a", "rename c>d", f"load s.a: s.a was renamed into the tables of this sink: {SWAP}"],
        ),
        (replace(rename("a>b", "c>b2"), last=False, position=""), ["s.a", "s.c"], ["drop s.a", "drop s.c"]),
    ],
)
def test_a_rename_is_cut_to_the_tables_of_the_sink(ddl, tables, found):
    assert cut(ddl, *tables) == found


def test_other_changes_go_to_the_sinks_of_their_table():
    stage = SelectionStage([only(TablePatterns.parse(["shop.orders"]))])
    other = create(8, replace(ORDERS, name="other"))
    assert stage.apply([create(7, ORDERS), other]) == [create(7, ORDERS), transaction(8)]


def test_a_table_of_one_of_several_sources_is_chosen_by_its_name_in_the_source():
    stage = SelectionStage([only(TablePatterns.parse(["shop.orders"]))], ["north", "south"])
    loaded = [transaction(7, chunk=Chunk(name)) for name in ("north: shop.orders", "south: shop.other")]
    assert stage.apply(loaded) == loaded[:1]
    moved = replace(rename("a>b"), source_name="north")
    (dropped,) = SelectionStage([only(TablePatterns.parse(["s.a"]))]).apply([moved])
    assert dropped.origin_name == "north: s.a"
    assert tables_of(moved) == ["north: s.a", "north: s.b"]


class Undecoded(Run):
    def changes(self):
        raise AssertionError(f"rows of {self.table.full_name} were decoded")


def undecoded(*tables: Table) -> Transaction:
    runs: list[Run] = [Undecoded(7, 0, table, "insert", None) for table in tables]
    return replace(transaction(7), rows=Rows(runs))


def test_the_choice_of_tables_decodes_no_row():
    pairs = replace(ORDERS, name="pairs")
    stage = SelectionStage([only(TablePatterns.parse(["shop.orders"]))])
    item = undecoded(ORDERS)
    (same,) = stage.apply([item])
    assert same is item
    some, none = stage.apply([undecoded(pairs, ORDERS, pairs), undecoded(pairs)])
    assert [run.table for run in some.runs] == [ORDERS]
    assert none.runs == []


@pytest.mark.parametrize("schema", ["s", "other", ""])
def test_a_statement_whose_tables_are_not_known_stops_every_sink(schema):
    refused = replace(alter(7, ORDERS, "FROBNICATE"), schema=schema, table="", actions=(), refusal="unknown")
    assert SelectionStage([only(TablePatterns.parse(["s.a"]))]).apply([refused]) == [refused]
