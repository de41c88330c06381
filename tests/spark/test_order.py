"""Schema changes that tasks can't apply end the writing, with a sentence."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tidemill.errors import SinkError
from tidemill.events import (
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    TruncateTable,
)
from tidemill.spark.envelope import EnvelopeEncoder
from tidemill.spark.write.order import Ordered
from tidemill.testing.changes import ORDERS, alter

CHANGE = alter(7, ORDERS, "ALTER TABLE orders …")


def written(ddl: Ddl) -> list[Ddl]:
    return [item for items in Ordered("end").items([EnvelopeEncoder().encode([ddl])]) for item in items]


@pytest.mark.parametrize(
    "changes",
    [
        {"actions": (DropTable(),)},
        {"actions": (TruncateTable(),)},
        {"actions": (RenameTables(((("shop", "orders"), ("shop", "old")),)),)},
        {"actions": (AddColumn(Column("n", "int")), ChangeColumn("note", Column("note", "int")))},
        {"actions": (ChangeKey(()),)},
        {"actions": (CreateTable(ORDERS, replaces=True),)},
        {"reload": "the table must be loaded again"},
    ],
)
def test_a_change_that_tasks_cannot_apply_stops_them(changes) -> None:
    with pytest.raises(
        SinkError, match=r'shop\.orders: Spark.s tasks only .* engine = "local", .*: ALTER TABLE orders'
    ):
        written(replace(CHANGE, **changes))


def test_columns_are_added_and_dropped_and_tables_created() -> None:
    for actions in [(AddColumn(Column("n", "int")), DropColumn("note")), (CreateTable(ORDERS),)]:
        ddl = replace(CHANGE, actions=actions)
        assert written(ddl) == [replace(ddl, position="end")]
