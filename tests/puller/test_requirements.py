"""Findings about the followed tables from their names alone."""

from __future__ import annotations

from tidemill.puller.mysql.requirements import Finding, same_names
from tidemill.snapshot.mysql.tables import FoundTable


def test_tables_of_one_full_name_can_t_both_be_followed() -> None:
    tables = [FoundTable("a1", "b"), FoundTable("a1", "b.c"), FoundTable("a1", "c"), FoundTable("a1.b", "c")]
    assert list(same_names(tables[:3])) == []
    assert list(same_names(tables)) == [
        Finding(
            "error",
            "`a1`.`b.c` and `a1.b`.`c` can't both be followed, as a1.b.c may be either: leave one out",
            tables=("a1.b.c",),
        )
    ]
