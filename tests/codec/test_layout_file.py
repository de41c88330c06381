from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.mysql.layout_file import LayoutFile, read_layouts
from tidemill.codec.mysql.rows import RowsDecoder
from tidemill.codec.mysql.table_map import map_of_widths
from tidemill.errors import SourceError
from tidemill.events import Column, Table
from tidemill.testing.binlog_events import INT, table_map

from .vectors import Vector, load

MAP = table_map(INT)
SNAPSHOT = Table("shop", "people", (Column("id", "int"),), (0,))


def test_layouts_from_before_and_after_are_read_with_their_numbers(tmp_path: Path) -> None:
    layouts = Layouts("north")
    layouts.number_of(MAP)
    file = LayoutFile(tmp_path / "shop.north.layouts", 1, 3)
    layouts.record(file.add)
    layouts.add_table(SNAPSHOT)
    layouts.number_of(MAP)
    file.close()
    found = [*read_layouts(tmp_path)]
    assert [(one.lane, one.lanes, one.number, one.table_map) for one in found] == [
        (1, 3, 1, MAP), (1, 3, 2, b""),
    ]  # fmt: skip
    assert [one.name for one in found] == ["north: shop.t", "north: shop.people"]


def test_a_new_process_begins_a_new_file_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "shop.layouts"
    path.write_bytes(b"of another process")
    layouts = Layouts()
    layouts.number_of(MAP)
    file = LayoutFile(path)
    layouts.record(file.add)
    file.close()
    path.write_bytes(path.read_bytes() + b'{"lane":0,"lan')
    assert [one.name for one in read_layouts(tmp_path)] == ["shop.t"]


def test_a_directory_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    layouts = Layouts()
    layouts.record(LayoutFile(tmp_path / "missing" / "layouts").add)
    assert layouts.number_of(MAP) == 1
    assert [*read_layouts(tmp_path / "missing")] == []


@pytest.mark.parametrize("vector", load(), ids=lambda vector: vector.definition)
def test_rows_of_every_type_are_told_apart_by_their_widths(vector: Vector) -> None:
    layouts = Layouts()
    whole = layouts.layout(layouts.number_of(vector.table_map))
    decoder = RowsDecoder(map_of_widths(vector.table_map))
    for event in vector.events:
        starts = decoder.starts(event)
        assert starts is not None
        assert len(starts) == len(whole.decode_rows(event, 1, 1))
        assert all(one < other for one, other in pairwise(starts))


def test_names_of_columns_are_not_needed() -> None:
    assert len(map_of_widths(table_map(INT, INT, full=False)).fields) == 2


def test_an_incomplete_table_map_is_an_error() -> None:
    with pytest.raises(SourceError, match="can't be read"):
        map_of_widths(MAP[:9])
