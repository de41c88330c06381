"""Rules of the one form, as the stage evaluates them, and choices of tables that are made of others."""

from __future__ import annotations

import re

import pytest

from tidemill.chain.selection.kinds import DDL_KINDS, KINDS
from tidemill.chain.selection.rule import Rule, only
from tidemill.chain.selection.stage import SelectionStage
from tidemill.chain.selection.tables import TablePatterns
from tidemill.events import WHOLE, AddColumn, Chunk, Column, DropColumn, RenameTables, Rows, Transaction
from tidemill.testing.changes import ORDERS, PAIRS, alter, create, delete, insert, transaction, update

from .built import filter_rules, row_rules

ADD, DROP = AddColumn(Column("n", "int")), DropColumn("note")


def test_a_rule_about_kinds_of_schema_changes_drops_their_actions():
    stage = SelectionStage([Rule(TablePatterns.parse(["shop.*"]), frozenset({"add column"}))])
    both, one = alter(7, ORDERS, "ALTER …", ADD, DROP), alter(8, ORDERS, "ALTER …", ADD)
    assert stage.apply([both, one]) == [alter(7, ORDERS, "ALTER …", DROP), transaction(8)]


def test_a_rule_about_statements_searches_for_its_expression():
    stage = SelectionStage([Rule(kinds=frozenset(DDL_KINDS), statements=re.compile("note"))])
    kept = alter(7, ORDERS, "ALTER TABLE orders ADD n INT", ADD)
    assert stage.apply([kept, alter(8, ORDERS, "ALTER TABLE orders DROP note", DROP)]) == [
        kept,
        transaction(8),
    ]


def test_tables_are_created_for_a_snapshot_whatever_schema_changes_are_dropped():
    stage = SelectionStage([Rule(kinds=frozenset(DDL_KINDS))])
    assert stage.apply([create(7, ORDERS)]) == [create(7, ORDERS)]


def test_a_rule_with_timestamps_is_about_the_events_committed_then():
    stage = SelectionStage(
        [Rule(TablePatterns.parse(["*.orders"]), frozenset(KINDS), timestamps=frozenset({7}))]
    )
    order, pair = insert(ORDERS, 1, "a"), insert(PAIRS, 1, "c", 4)
    loaded = transaction(7, order, chunk=Chunk("shop.orders", WHOLE))
    at, other = stage.apply([transaction(7, order, pair), transaction(8, order)])
    assert (list(at.rows), list(other.rows)) == ([pair], [order])
    assert stage.apply([loaded]) == [loaded]
    assert stage.apply([alter(7, ORDERS, "ALTER …", ADD)]) == [transaction(7)]


def test_events_are_those_of_the_source_whatever_a_condition_makes_of_them():
    rules = (
        *filter_rules([{"tables": ["*.*"], "where": "id < 10"}]),
        *row_rules([{"events": ["update"]}]),
    )
    changes = [update(ORDERS, (1, "a"), (11, "a")), insert(ORDERS, 12, "a"), delete(ORDERS, 13, "a")]
    (left,) = SelectionStage(rules).apply([transaction(7, *changes)])
    assert list(left.rows) == [insert(ORDERS, 11, "a")]


def test_a_condition_decodes_only_the_tables_that_it_is_about():
    stage = SelectionStage(filter_rules([{"tables": ["shop.orders"], "where": "id < 10"}]))
    item = transaction(7, insert(ORDERS, 1, "a"), insert(PAIRS, 1, "c", 4))
    orders, pairs = item.runs
    pairs.decoded = None
    (left,) = stage.apply([Transaction(7, 7, "src", Rows([orders, pairs]))])
    assert left.runs == [pairs]
    assert pairs.decoded is None


def test_a_renamed_table_is_chosen_before_conditions_on_its_rows():
    rules = [
        only(TablePatterns.parse(["shop.orders"])),
        *filter_rules([{"tables": ["shop.*"], "where": "id < 10"}]),
    ]
    names = ((("shop", "orders"), ("shop", "old")), (("shop", "new"), ("shop", "orders")))
    gone, come = SelectionStage(rules).apply([alter(7, ORDERS, "RENAME …", RenameTables(names))])
    assert (gone.full_name, come.full_name, come.reload) == (
        "shop.orders",
        "shop.orders",
        "shop.orders was renamed into the tables of this sink: RENAME …",
    )


@pytest.mark.parametrize(
    ("tables", "has"),
    [
        (TablePatterns.parse(["shop.*", "!shop.b"]).others(), ["shop.b", "bank.a", "bank.b"]),
        (TablePatterns.parse(["shop.*"]).within(lambda _, table: table == "a"), ["shop.a"]),
        (
            TablePatterns.of_several(
                {"x": TablePatterns.parse(["shop.*", "!*.b"]), "y": TablePatterns.parse(["bank.b"])}
            ),
            ["shop.a", "bank.b"],
        ),
        (TablePatterns.parse(["SHOP.~A|B", "!*.B"], ignores_case=True), ["shop.a"]),
    ],
)
def test_choices_of_tables_are_made_of_others(tables, has):
    names = ["shop.a", "shop.b", "bank.a", "bank.b"]
    assert [name for name in names if tables.matches_full(name)] == has


def test_only_the_members_of_a_choice_name_unmatched_patterns():
    members = {"x": TablePatterns.parse(["shop.*", "bank.*"])}
    assert TablePatterns.of_several(members).patterns == ("x: shop.*", "x: bank.*")
    assert TablePatterns.of_several(members).unmatched([("shop", "a")]) == []
    assert members["x"].within(lambda *_: True).unmatched([("shop", "a")]) == ["bank.*"]
    assert members["x"].within(lambda *_: True, is_part=True).unmatched([("shop", "a")]) == [
        "shop.*",
        "bank.*",
    ]
