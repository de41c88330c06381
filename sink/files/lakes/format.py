"""Parquet files of a lake's tables: the columns of docs/reference/parquet.md, in types that lakes have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from ....errors import SinkError
from ....events import ChangeColumn, Ddl, Item, Table
from ..formats import Piece
from ..parquet_columns import MOST_DIGITS, arrow_type
from ..parquet_format import ParquetFormat

_UNSIGNED_DIGITS: Final = 20
"""Digits of the largest uint64."""


class LakeFormat(ParquetFormat):
    """Every integer is a long, or a decimal if it is an unsigned one of 64 bits; a decimal has as many digits
    as there can be. So a statement that makes a column wider doesn't change its type."""

    def __init__(self, arrange: Callable[[Table | None, pa.Table], pa.Table]) -> None:
        """`arrange` completes the columns of a table's file, or of one of schema changes."""
        super().__init__()
        self._arrange: Final = arrange

    def pieces(self, items: Sequence[Item]) -> Iterator[Piece]:
        for item in items:
            if isinstance(item, Ddl):
                _check(item)
        yield from super().pieces(items)

    def arranged(self, table: Table | None, rows: pa.Table) -> pa.Table:
        fields = [_field(field) for field in rows.schema]
        return self._arrange(table, rows.cast(pa.schema(fields, rows.schema.metadata)))


def _check(ddl: Ddl) -> None:
    """Raise SinkError for a statement that gives a column a type that the table can't hold beside the old
    one."""
    for action in ddl.actions:
        if not isinstance(action, ChangeColumn) or action.before is None or action.column.name != action.name:
            continue
        before, after = _type(arrow_type(action.before)), _type(arrow_type(action.column))
        if before != after:
            raise SinkError(
                f"{ddl.full_name}: {ddl.query!r} makes {action.name}, which is {before} in the lake, "
                f"{after}: add a column of another name in its place, or give the feed another prefix, where "
                "it loads all tables"
            )


def _field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _type(field.type), field.nullable)


def _type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_field(field) for field in kind])
    if pa.types.is_uint64(kind):
        return pa.decimal128(_UNSIGNED_DIGITS, 0)
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.decimal128(MOST_DIGITS, kind.scale) if pa.types.is_decimal(kind) else kind
