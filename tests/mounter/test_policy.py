"""Rules about schema changes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tidemill.chain.selection.kinds import DDL_KINDS
from tidemill.chain.selection.rule import Rule
from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.mysql.entry import Query
from tidemill.mounter.mysql.catalog import Catalog
from tidemill.mounter.mysql.change import Change
from tidemill.mounter.mysql.ddl import Statements
from tidemill.mounter.mysql.policy import Policy

BEFORE = ("CREATE TABLE t (a INT, b INT)", "CREATE TABLE u (a INT)")


def rule(action: str, *kinds: str, tables: str = "shop.*") -> Rule:
    return Rule(TablePatterns.parse([tables]), frozenset(kinds or DDL_KINDS), action=action)


def left(
    statement: str,
    *rules: Rule,
    skip: tuple[str, ...] = (),
    filters: Sequence[Rule] = (),
) -> list[str]:
    """The changes of a statement at log:9 that are left, a line each."""
    catalog = Catalog()
    catalog.learn([], {})
    statements = Statements(TablePatterns.parse(["shop.*"]), catalog)
    for one in BEFORE:
        statements.changes(Query("shop", one, 0.0))
    query = Query("shop", statement, 0.0, position="log:9")
    policy = Policy((*filters, *rules), skip)
    return [said(change) for change in policy.apply(statements.changes(query), query)]


def said(change: Change) -> str:
    what = change.refusal or change.reload or " ".join(type(action).__name__ for action in change.actions)
    return f"{change.schema}.{change.table}: {what}"


def test_without_rules_changes_are_applied() -> None:
    assert left("ALTER TABLE t ADD c INT, DROP b") == ["shop.t: AddColumn DropColumn"]


def test_the_last_rule_that_matches_wins() -> None:
    rules = rule("stop"), rule("skip", "truncate"), rule("stop", tables="shop.u"), rule("apply", "drop table")
    assert left("TRUNCATE t", *rules) == []
    assert left("DROP TABLE t", *rules) == ["shop.t: DropTable"]
    assert left("DROP TABLE t", *reversed(rules))[0].startswith("shop.t: table shop.t: stopped")


def test_stop_names_the_position_and_the_ways_to_go_on() -> None:
    assert left("ALTER TABLE t ADD c INT, DROP b", rule("stop", "drop column")) == [
        "shop.t: table shop.t: stopped before a statement of kind 'drop column' at log:9, as on_ddl says: "
        "ALTER TABLE t ADD c INT, DROP b; to go on without it: tidemill resume FEED --skip-ddl log:9; to "
        "load the table again: tidemill resume FEED --resnapshot shop.t"
    ]


def test_nothing_of_a_statement_is_applied_before_it_stops() -> None:
    stopped, *rest = left("DROP TABLE t, u", rule("stop", tables="shop.u"))
    assert stopped.startswith("shop.u: table shop.u: stopped")
    assert rest == ["shop.t: DropTable"]


def test_the_position_named_is_the_one_that_skips() -> None:
    assert left("DROP TABLE t, u", rule("stop"), skip=("log:9",)) == []
    assert len(left("DROP TABLE t, u", skip=("log:8",))) == 2


def test_some_kinds_of_a_statement_are_skipped() -> None:
    assert left("ALTER TABLE t ADD c INT, DROP b", rule("skip", "drop column")) == ["shop.t: AddColumn"]


STATEMENTS = ["TRUNCATE t", "ALTER TABLE t DROP b", "CREATE OR REPLACE TABLE t (x INT)"]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_table_is_loaded_again(statement: str) -> None:
    assert left(statement, rule("resnapshot")) == [
        f"shop.t: table shop.t is loaded again, as on_ddl says: {statement}"
    ]


def test_a_dropped_table_is_dropped_in_place_of_a_new_load() -> None:
    assert left("DROP TABLE t", rule("resnapshot")) == ["shop.t: DropTable"]


def test_renamed_tables_are_loaded_under_their_new_names() -> None:
    statement = "RENAME TABLE t TO v, u TO t"
    assert left(statement, rule("resnapshot")) == [
        "shop.u: DropTable",
        f"shop.v: table shop.v is loaded again, as on_ddl says: {statement}",
        f"shop.t: table shop.t is loaded again, as on_ddl says: {statement}",
    ]


def test_a_load_of_changed_partitions_can_be_skipped_or_stopped() -> None:
    statement = "ALTER TABLE t DROP PARTITION p"
    assert left(statement, rule("skip", "partition")) == []
    assert "stopped" in left(statement, rule("stop", "partition"))[0]
    assert "is loaded again" in left(statement, rule("apply"))[0]


def test_a_position_of_several_sources_names_its_source() -> None:
    refusal = Change("shop", "", refusal="no", kind="other")
    query = Query("shop", "x", 0.0, position="log:9")
    policy = Policy((), ("a=log:9",))
    (left_over,) = policy.of_source("b").apply([refusal], query)
    assert left_over.refusal == "no (to skip it: tidemill resume FEED --skip-ddl b=log:9)"
    assert policy.of_source("a").apply([refusal], query) == []


def test_a_refused_statement_can_be_skipped_by_its_position() -> None:
    (refusal,) = left("ALTER TABLE 'x")
    assert refusal.endswith("(to skip it: tidemill resume FEED --skip-ddl log:9)")
    assert left("ALTER TABLE 'x", skip=("log:9",)) == []


def drop(*kinds: str, sql: str = "", tables: str = "shop.*") -> Rule:
    expression = re.compile(sql, re.IGNORECASE) if sql else None
    return Rule(TablePatterns.parse([tables]), frozenset(kinds or DDL_KINDS), expression)


@pytest.mark.parametrize(
    ("statement", "filters", "found"),
    [
        ("TRUNCATE t", [drop("truncate")], []),
        ("TRUNCATE t", [drop("truncate", tables="shop.u")], ["shop.t: TruncateTable"]),
        ("ALTER TABLE t ADD c INT, DROP b", [drop("add column")], ["shop.t: DropColumn"]),
        ("ALTER TABLE t ADD c INT, DROP b", [drop("add column"), drop("drop column")], []),
        ("ALTER TABLE t ADD c INT", [drop(sql=r"add\s+c")], []),
        ("ALTER TABLE t ADD d INT", [drop(sql=r"add\s+c")], ["shop.t: AddColumn"]),
        ("ALTER TABLE t ENGINE=BLACKHOLE", [drop("other", sql="blackhole")], []),
        ("DROP TABLE t, u", [drop("drop table", tables="shop.u")], ["shop.t: DropTable"]),
    ],
)
def test_a_filter_drops_schema_changes_by_table_kind_and_statement(statement, filters, found) -> None:
    assert left(statement, rule("apply"), filters=filters) == found


def test_a_filter_comes_before_the_rules() -> None:
    assert left("TRUNCATE t", rule("stop"), filters=[drop("truncate")]) == []


def test_a_statement_that_can_t_be_parsed_is_dropped_by_its_text() -> None:
    assert left("ALTER TABLE t SOMETHING NEW", filters=[drop(sql="SOMETHING NEW$")]) == []
