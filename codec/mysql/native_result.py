"""Native reading of rows of a result in the binary protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ...events import (
    AS_BYTES,
    Column,
    RowChange,
    Table,
)
from ..native.column import Description, decimal
from ..native.library import native
from .row_code import RowsReader

if TYPE_CHECKING:
    from ..native.arrow import Assembly

_INT_BYTES: Final = {"tinyint": 1, "smallint": 2, "year": 2, "mediumint": 4, "int": 4, "bigint": 8}
_FORMS: Final = {
    "float": ("FLOAT_BYTES", "AS_DOUBLE", 4),
    "double": ("DOUBLE_BYTES", "AS_DOUBLE", 8),
    "bit": ("SENT_BITS", "AS_UINT", 8),
    "date": ("SENT_DATE", "AS_DATE", 4),
    "time": ("SENT_TIME", "AS_DURATION", 8),
    "datetime": ("SENT_MOMENT", "AS_DATETIME", 8),
    "timestamp": ("SENT_MOMENT", "AS_TIMESTAMP", 8),
}
"""Form of a value, what becomes of it, and the bytes of an element of its Arrow array."""


def result_reader(
    table: Table, converters: Sequence[Callable[[bytes], Any] | None], python: RowsReader
) -> RowsReader:
    """Return the twin of `python`, which reads rows of more than one packet."""
    pairs = zip(table.columns, converters, strict=True)
    layout = native.Layout(tuple([_describe(column)._replace(reader=convert) for column, convert in pairs]))
    return native.ResultReader(layout, RowChange, table, python)


class ResultLayout:
    """The layout of a table's rows in a result."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._descriptions = tuple(map(_describe, table.columns))
        self._layout = native.Layout(self._descriptions)

    def columns(self, packets: bytes) -> list[Any]:
        """Return the Arrow array of each column.

        Raises ValueError, or an error of Arrow, for rows that are to be read one by one.
        """
        parts = native.result_columns(self._layout, packets)
        return self._assembly.arrays(parts, native.count_rows(packets))

    @cached_property
    def _assembly(self) -> Assembly:
        from ..native.arrow import Assembly  # here, as it needs pyarrow

        return Assembly(self._table.columns, self._descriptions)


def _describe(column: Column) -> Description:
    if size := _INT_BYTES.get(column.kind):
        output = native.AS_UINT if column.unsigned else native.AS_INT
        return Description(native.LITTLE_ENDIAN_INT, output, size, width=size)
    if column.kind == "decimal":
        return decimal(native.SENT_DECIMAL, column.length, column.scale)
    if column.kind in _FORMS:
        read, made, width = _FORMS[column.kind]
        return Description(getattr(native, read), getattr(native, made), scale=column.scale, width=width)
    return Description(native.SENT_BYTES, native.AS_BYTES if column.kind in AS_BYTES else native.AS_TEXT)
