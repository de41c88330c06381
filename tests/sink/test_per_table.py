from __future__ import annotations

from tidemill.events import Column, Table
from tidemill.events.per_table import PerTable


def table(number: int) -> Table:
    return Table("shop", f"t{number}", (Column("id", "int"),))


def test_what_a_table_needs_is_made_once():
    made = []
    ready = PerTable(lambda table: made.append(table.name) or table.name)
    assert [ready[table(number)] for number in (1, 2, 1)] == ["t1", "t2", "t1"]
    assert made == ["t1", "t2"]


def test_however_many_tables_come_few_are_kept_ready():
    ready = PerTable(lambda table: table.name)
    assert [ready[table(number)] for number in range(2_500)] == [f"t{number}" for number in range(2_500)]
    assert len(ready) <= 1_000
