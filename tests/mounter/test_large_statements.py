"""Memory and time of statements with a large text, from the binlog to their effect."""

from __future__ import annotations

import tracemalloc
from struct import pack

import pytest

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.mysql.entry import Query
from tidemill.mounter.mysql.catalog import Catalog
from tidemill.mounter.mysql.change import Change
from tidemill.mounter.mysql.ddl import Statements
from tidemill.puller.mysql.dml import changes_definitions
from tidemill.puller.mysql.query import LoggedStatement

SIZE = 2 << 20
WORDS = 20_000
FOLLOWED = TablePatterns.parse(["shop.*"])


def effect(statement: str, schema: str) -> tuple[list[Change], float]:
    """The effect of a statement, and the bytes of memory that it took for each of its characters."""
    body = pack("<IIBHH", 1, 0, len(schema), 0, 0) + f"{schema}\0{statement}".encode()
    tracemalloc.start()
    try:
        changes: list[Change] = []
        if changes_definitions(LoggedStatement(body), False, FOLLOWED.matches, ""):
            changes = Statements(FOLLOWED, Catalog()).changes(Query(schema, statement, 0.0))
        return changes, tracemalloc.get_traced_memory()[1] / len(statement)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE PROCEDURE p() SELECT '{'x' * SIZE}'",
        f"CREATE PROCEDURE p() SELECT {'1,' * SIZE}",
        f"/*{'*' * SIZE}*/ GRANT SELECT ON *.* TO x",
        f"{'/**/' * WORDS} DROP VIEW v",
        f"CREATE TABLE t (a INT) COMMENT '{'x' * SIZE}'",
        f"CREATE TABLE t (a INT DEFAULT '{chr(39) * SIZE}')",
        f"ALTER TABLE t ADD a INT DEFAULT ({'1+' * WORDS}1)",
    ],
    ids=lambda text: text[:24],
)
def test_a_large_statement_of_an_unfollowed_schema_takes_little_memory(statement: str) -> None:
    changes, memory = effect(statement, "other")
    assert not changes
    assert memory < 10


@pytest.mark.parametrize("statement", ["CREATE TABLE t ({})", "ALTER TABLE t ADD ({})"])
def test_a_large_statement_of_a_followed_table_loads_it_again(statement: str) -> None:
    changes, memory = effect(statement.format(f"a TEXT DEFAULT '{'x' * SIZE}'"), "shop")
    (change,) = changes
    assert "(a statement of 2097" in change.reload
    assert memory < 10
