"""Rows of DM's checkpoint that belong to a feed's."""

from __future__ import annotations

import json

import pytest

from tidemill.errors import CheckpointError
from tidemill.events import Checkpoint, TablePosition
from tidemill.sink.dm.checkpoint import checkpoint_of, rows_of
from tidemill.sink.dm.point import Point
from tidemill.sink.dm.table import DmRow


def at(offset: int) -> TablePosition:
    return TablePosition(offset, f"log.000001:{offset} gtid=0-1-{offset} server=1")


def shown(rows: list[DmRow]) -> list[str]:
    return [
        f"{row.id} {row.schema}.{row.table} {row.point.offset}{' global' * row.is_global}" for row in rows
    ]


def test_a_feed_whose_tables_are_all_at_one_position_has_a_global_row_only():
    (row,) = rows_of(Checkpoint(90, at(90).position), "n", ["a.t"])
    assert row == DmRow("n", "", "", Point("log.000001", 90, "0-1-90"), None, True)


def test_while_a_table_lags_the_others_have_rows_of_their_own():
    tables = {"a.late": at(10), "a.later": at(40), "a.ahead": at(95)}
    found = rows_of(Checkpoint(90, at(90).position, tables=tables), "n", ["a.t", "a.late", "a.ahead"])
    assert shown(found) == ["n . 10 global", "n a.ahead 95", "n a.late 10", "n a.later 40", "n a.t 90"]


def test_each_source_has_its_own_lowest_position():
    def both(north: int, south: int) -> str:
        return json.dumps({"north": at(north).position, "south": at(south).position, "@": {"north": 1}})

    tables = {"south: a.late": TablePosition(5, both(10, 20))}
    touched = ["north: a.t", "south: a.t"]
    found = rows_of(Checkpoint(90, both(80, 90), tables=tables), "", touched)
    assert shown(found) == ["north . 80 global", "south . 20 global", "south a.late 20", "south a.t 90"]


def test_inside_a_prepared_transaction_there_are_no_rows():
    assert rows_of(Checkpoint(9, f"{at(9).position} prepared log.000001:4"), "n", []) == []


def test_positions_in_a_relay_log_count_by_their_gtids_or_by_the_server_s_file():
    def row(gtid: str) -> DmRow:
        return DmRow("n", "", "", Point("log|000002.000003", 7, gtid), None, True)

    for gtid, position in (("uuid:1-9", "uuid:1-9"), ("", "log.000003:7")):
        found = checkpoint_of([row(gtid)], "n", "t", 0)
        assert found is not None
        assert found.position == position


def test_rows_of_tables_without_a_global_one_are_refused():
    rows = [
        DmRow("north", "", "", Point("log.000001", 7), None, True),
        DmRow("south", "a", "t", Point("log.000001", 7), None, False),
    ]
    with pytest.raises(CheckpointError, match=r"^t: source south has rows of tables and no global one"):
        checkpoint_of(rows, "", "t", 0)
