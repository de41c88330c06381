"""Tables made up for tests of rows."""

from __future__ import annotations

from typing import Any

from tidemill.codec.tidb.column_type import ColumnFlag, Type
from tidemill.codec.tidb.table_info import ColumnInfo, IndexColumn, IndexInfo, TableInfo

TEXT: dict[str, Any] = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}
BYTES: dict[str, Any] = {"charset": "binary", "collation": "binary"}


def column(id_: int, type_: Type, flags: int = 0, name: str = "", **details: Any) -> ColumnInfo:
    return ColumnInfo(
        id=id_, name=name or f"c{id_}", offset=id_ - 1, type=type_, flags=flags, **{**BYTES, **details}
    )


def table(*columns: ColumnInfo, **details: Any) -> TableInfo:
    """With an integer key in front: column id 1, `id`."""
    key = column(1, Type.LONGLONG, ColumnFlag.PRI_KEY | ColumnFlag.NOT_NULL, "id")
    return TableInfo(**{"id": 7, "name": "t", "columns": (key, *columns), "pk_is_handle": True, **details})


def clustered(*columns: ColumnInfo, key: tuple[int, ...], **details: Any) -> TableInfo:
    """Its key is the columns at these places."""
    parts = tuple(IndexColumn(columns[place].name, place) for place in key)
    index = IndexInfo(id=1, name="PRIMARY", columns=parts, unique=True, primary=True)
    info = {"id": 7, "name": "t", "columns": columns, "indexes": (index,), "is_common_handle": True}
    return TableInfo(**{**info, **details})


EVERY_TYPE = table(
    column(2, Type.TINY),
    column(3, Type.SHORT, ColumnFlag.UNSIGNED),
    column(4, Type.INT24),
    column(5, Type.LONG, ColumnFlag.UNSIGNED),
    column(6, Type.LONGLONG),
    column(7, Type.LONGLONG, ColumnFlag.UNSIGNED),
    column(8, Type.FLOAT),
    column(9, Type.DOUBLE),
    column(10, Type.NEWDECIMAL, length=30, decimal=10),
    column(11, Type.NEWDECIMAL, length=7, decimal=0),
    column(12, Type.DATE),
    column(13, Type.DATETIME, decimal=6),
    column(14, Type.TIMESTAMP, decimal=3),
    column(15, Type.TIME, decimal=6),
    column(16, Type.YEAR, ColumnFlag.UNSIGNED),
    column(17, Type.BIT, ColumnFlag.UNSIGNED, length=64),
    column(18, Type.ENUM, elements=("a", "b", "ü"), **TEXT),
    column(19, Type.SET, elements=("p", "q", "r"), **TEXT),
    column(20, Type.JSON),
    column(21, Type.VARCHAR, length=100, **TEXT),
    column(22, Type.LONG_BLOB),
    column(23, Type.STRING, length=4),
    column(24, Type.BLOB, **TEXT),
    column(25, Type.NEWDECIMAL, length=18, decimal=15),
    column(26, Type.NEWDECIMAL, length=6, decimal=6),
    column(27, Type.NEWDECIMAL, length=5, decimal=0),
)
