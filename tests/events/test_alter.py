"""Definitions of tables after a statement."""

from __future__ import annotations

import pytest

from tidemill.codec.mysql.definition import parse_column
from tidemill.events import AddColumn, ChangeColumn, ChangeKey, Column, DropColumn, Table
from tidemill.events.alter import altered


def columns(*definitions: str) -> tuple[Column, ...]:
    return tuple(parse_column(*definition.split()) for definition in definitions)


def table(*definitions: str, key: tuple[int, ...] = (0,)) -> Table:
    return Table("shop", "item", columns(*definitions), key)


def change(name: str, definition: str, after: str | None = None) -> ChangeColumn:
    return ChangeColumn(name, columns(definition)[0], after=after)


BEFORE = table("a INT", "b VARCHAR(9)", "c DATE")


@pytest.mark.parametrize(
    ("actions", "after"),
    [
        ([change("a", "b INT"), change("b", "a VARCHAR(9)")], table("b INT", "a VARCHAR(9)", "c DATE")),
        (
            [change("a", "b INT"), change("b", "c VARCHAR(9)"), change("c", "a DATE")],
            table("b INT", "c VARCHAR(9)", "a DATE"),
        ),
        ([DropColumn("b"), change("c", "b DATE")], table("a INT", "b DATE")),
        ([change("a", "b INT"), DropColumn("b")], table("b INT", "c DATE")),
        (
            [change("a", "b INT", after="c"), DropColumn("B"), ChangeKey(("c", "b"))],
            table("c DATE", "b INT", key=(0, 1)),
        ),
        (
            [change("b", "d VARCHAR(9)"), AddColumn(columns("b BLOB")[0], "d")],
            table("a INT", "d VARCHAR(9)", "b BLOB", "c DATE"),
        ),
    ],
)
def test_a_statement_names_columns_as_they_were_before_it(actions, after):
    assert altered(BEFORE, actions) == after


def test_a_column_that_is_not_there():
    with pytest.raises(StopIteration):
        altered(BEFORE, [DropColumn("x")])
