"""The parts of TiDB's definitions that don't concern values, as far as messages about statements need it."""

from __future__ import annotations

from ...events import ColumnDetails, Details, Index, IndexPart
from .column_type import ColumnFlag
from .table_info import PUBLIC, ColumnInfo, IndexInfo, PartitionInfo, TableInfo


def details_of(info: TableInfo) -> Details:
    """Return what differs between two definitions if a statement changes an index, a comment, a collation or
    partitions. It isn't complete: a copy can't be made of it."""
    columns = [_column(column) for column in info.columns if column.state == PUBLIC and not column.hidden]
    return Details(
        indexes=tuple(_index(index) for index in info.indexes if index.state == PUBLIC and not index.primary),
        columns=tuple(one for one in columns if one != ColumnDetails(one.name)),
        comment=info.comment,
        collation=info.collation,
        partitions="" if info.partition is None else _partitions(info.partition),
    )


def _column(column: ColumnInfo) -> ColumnDetails:
    is_automatic = bool(column.flags & ColumnFlag.AUTO_INCREMENT)
    return ColumnDetails(column.name, auto_increment=is_automatic, comment=column.comment)


def _index(index: IndexInfo) -> Index:
    parts = [IndexPart(part.name, max(part.length, 0)) for part in index.columns]
    return Index(index.name, tuple(parts), kind="UNIQUE" if index.unique else "")


def _partitions(partition: PartitionInfo) -> str:
    names = [f"{one.name} {','.join(one.less_than)}" for one in partition.definitions]
    return f"{partition.type} {partition.expression} {','.join(partition.columns)}: {'; '.join(names)}"
