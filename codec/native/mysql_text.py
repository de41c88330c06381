"""Native reading of rows of the text protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ...events import Column, RowChange, Table
from ..mysql.row_code import RowsReader
from .column import Description, decimal
from .library import native

if TYPE_CHECKING:
    from .arrow import Assembly

_WIDTHS: Final = {"tinyint": 1, "smallint": 2, "mediumint": 4, "int": 4, "bigint": 8, "bit": 8, "year": 2}
"""Bytes of an element of an Arrow array of integers."""
_FORMS: Final = {
    "date": ("PRINTED_DATE", "AS_DATE", 4),
    "time": ("PRINTED_TIME", "AS_DURATION", 8),
    "datetime": ("PRINTED_DATETIME", "AS_DATETIME", 8),
    "timestamp": ("PRINTED_DATETIME", "AS_TIMESTAMP", 8),
    "float": ("PRINTED_DOUBLE", "AS_DOUBLE", 4),
    "double": ("PRINTED_DOUBLE", "AS_DOUBLE", 8),
}


def text_reader(table: Table, converters: Sequence[Callable[[bytes], Any]], python: RowsReader) -> RowsReader:
    """Return the twin of `python`, which reads rows of more than one packet."""
    return native.TextReader(_layout(table, converters), RowChange, table, python)


class TextLayout:
    """The layout of a table's rows in the text protocol."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._descriptions = tuple(map(_describe, table.columns))
        self._layout = native.Layout(self._descriptions)

    def columns(self, packets: bytes) -> list[Any]:
        """Return the Arrow array of each column.

        Raises ValueError, or an error of Arrow, for rows that are to be read one by one.
        """
        found = native.text_columns(self._layout, packets)
        return self._assembly.arrays(found, native.count_rows(packets))

    @cached_property
    def _assembly(self) -> Assembly:
        from .arrow import Assembly  # here, as it needs pyarrow

        return Assembly(self._table.columns, self._descriptions)


def _layout(table: Table, converters: Sequence[Callable[[bytes], Any]]) -> native.Layout:
    pairs = zip(table.columns, converters, strict=True)
    return native.Layout(tuple([_describe(column)._replace(reader=convert) for column, convert in pairs]))


def _describe(column: Column) -> Description:
    if column.kind in _WIDTHS:
        is_unsigned = column.unsigned or column.kind == "bit"
        output = native.AS_UINT if is_unsigned else native.AS_INT
        return Description(native.PRINTED_INT, output, width=_WIDTHS[column.kind])
    if column.kind == "decimal":
        return decimal(native.PRINTED_DECIMAL, column.length, column.scale)
    if column.kind in _FORMS:
        read, made, width = _FORMS[column.kind]
        return Description(getattr(native, read), getattr(native, made), scale=column.scale, width=width)
    is_bytes = column.kind in ("binary", "varbinary", "blob", "geometry", "vector")
    return Description(native.PRINTED_BYTES, native.AS_BYTES if is_bytes else native.AS_TEXT)
