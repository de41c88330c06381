"""A table of TiDB with an integer key, `id`, and a text, `note`."""

from __future__ import annotations

from ..codec.tidb.column_type import ColumnFlag, Type
from ..codec.tidb.table_info import ColumnInfo, TableInfo


def item_table(table_id: int, name: str) -> TableInfo:
    key = ColumnInfo(
        id=1,
        name="id",
        offset=0,
        type=Type.LONGLONG,
        flags=ColumnFlag.PRI_KEY | ColumnFlag.NOT_NULL,
        charset="binary",
        collation="binary",
    )
    note = ColumnInfo(
        id=2,
        name="note",
        offset=1,
        type=Type.VARCHAR,
        length=255,
        charset="utf8mb4",
        collation="utf8mb4_bin",
    )
    return TableInfo(id=table_id, name=name, columns=(key, note), pk_is_handle=True, max_column_id=2)
