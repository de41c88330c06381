"""Details of TiDB's definitions: a statement that changes one of them is told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tidemill.codec.tidb.column_type import ColumnFlag, Type
from tidemill.codec.tidb.details import details_of
from tidemill.codec.tidb.table_info import (
    ColumnInfo,
    IndexColumn,
    IndexInfo,
    PartitionDefinition,
    PartitionInfo,
    TableInfo,
)
from tidemill.events import ColumnDetails, Index, IndexPart

ID = ColumnInfo(id=1, name="id", offset=0, type=Type.LONG, flags=ColumnFlag.AUTO_INCREMENT)
NOTE = ColumnInfo(id=2, name="note", offset=1, type=Type.VARCHAR)
PRIMARY = IndexInfo(id=1, name="PRIMARY", columns=(IndexColumn("id", 0),), unique=True, primary=True)
INDEX = IndexInfo(id=2, name="i", columns=(IndexColumn("note", 1, 5),), unique=True)
TABLE = TableInfo(id=7, name="t", columns=(ID, NOTE), indexes=(PRIMARY, INDEX))
PARTITIONS = PartitionInfo(expression="`id`", definitions=(PartitionDefinition(8, "p0", ("10",)),))


def test_indexes_and_attributes_of_columns_are_known() -> None:
    found = details_of(TABLE)
    assert found.indexes == (Index("i", (IndexPart("note", 5),), kind="UNIQUE"),)
    assert found.columns == (ColumnDetails("id", auto_increment=True),)


@pytest.mark.parametrize(
    "changed",
    [
        replace(TABLE, comment="more"),
        replace(TABLE, collation="utf8mb4_general_ci"),
        replace(TABLE, columns=(ID, replace(NOTE, comment="more"))),
        replace(TABLE, indexes=(PRIMARY, replace(INDEX, name="j"))),
        replace(TABLE, partition=PARTITIONS),
    ],
)
def test_each_change_of_them_is_seen(changed: TableInfo) -> None:
    assert details_of(changed) != details_of(TABLE)


def test_what_sessions_do_not_see_is_no_detail() -> None:
    building = replace(INDEX, id=3, name="j", state=3)
    hidden = ColumnInfo(id=3, name="_v", offset=2, type=Type.LONG, comment="more", hidden=True)
    assert details_of(
        replace(TABLE, columns=(ID, NOTE, hidden), indexes=(PRIMARY, INDEX, building))
    ) == details_of(TABLE)
