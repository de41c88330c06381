"""DuckDB's type for each kind of column, and rows as Arrow columns (docs/reference/duckdb.md#types)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, assert_never

import pyarrow as pa

from ...codec.text import datetime_text
from ...events import WITH_DATE, Column, Kind, Row
from ..database import StatementRejected

DECIMAL_DIGITS: Final = 38
"""Maximum number of digits of DuckDB's DECIMAL."""

_INTEGERS: Final[dict[Kind, tuple[str, pa.DataType, pa.DataType]]] = {
    "tinyint": ("TINYINT", pa.int8(), pa.uint8()),
    "smallint": ("SMALLINT", pa.int16(), pa.uint16()),
    "mediumint": ("INTEGER", pa.int32(), pa.uint32()),
    "int": ("INTEGER", pa.int32(), pa.uint32()),
    "bigint": ("BIGINT", pa.int64(), pa.uint64()),
}


def declared_type(column: Column, *, dates_as_text: bool = False) -> str:
    """Return the type as duckdb_columns() prints it."""
    return _types(column, dates_as_text=dates_as_text)[0]


def _types(column: Column, *, dates_as_text: bool) -> tuple[str, pa.DataType]:
    if is_text(column, dates_as_text=dates_as_text):
        return "VARCHAR", pa.large_string()
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            name, signed, unsigned = _INTEGERS[column.kind]
            return (f"U{name}", unsigned) if column.unsigned else (name, signed)
        case "decimal":
            return f"DECIMAL({column.length},{column.scale})", pa.decimal128(column.length, column.scale)
        case "float":
            return "FLOAT", pa.float32()
        case "double":
            return "DOUBLE", pa.float64()
        case "bit":
            return "UBIGINT", pa.uint64()
        case "year":
            return "SMALLINT", pa.int16()
        case "date":
            return "DATE", pa.date32()
        case "time":
            return "INTERVAL", pa.duration("us")
        case "datetime":
            return "TIMESTAMP", pa.timestamp("us")
        case "timestamp":
            return "TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC")
        case "json":
            return "JSON", pa.large_string()
        case "char" | "varchar" | "text" | "enum" | "set" | "uuid" | "inet4" | "inet6":
            return "VARCHAR", pa.large_string()
        case "binary" | "varbinary" | "blob" | "geometry" | "vector":
            return "BLOB", pa.large_binary()
        case _:
            assert_never(column.kind)


def is_text(column: Column, *, dates_as_text: bool) -> bool:
    """Return True for a number or date that is stored as text, because DuckDB lacks some of its values."""
    if column.kind == "decimal":
        return column.length > DECIMAL_DIGITS
    return dates_as_text and column.kind in WITH_DATE


class Encoder:
    """Converts rows of a table's columns to columns of an Arrow table."""

    def __init__(self, columns: Sequence[Column], *, dates_as_text: bool) -> None:
        self._columns = columns
        self._types = [_types(column, dates_as_text=dates_as_text)[1] for column in columns]
        self._texts = [
            _text_of(column) if is_text(column, dates_as_text=dates_as_text) else None for column in columns
        ]

    def arrays(self, rows: Sequence[Row], index: Iterable[int]) -> list[pa.Array]:
        """Return an array for each column in `index`. Raises StatementRejected for a value that DuckDB can't
        store."""
        return [self._array(i, [row[i] for row in rows]) for i in index]

    def _array(self, i: int, values: list[object]) -> pa.Array:
        if (text := self._texts[i]) is not None:
            values = [None if value is None else text(value) for value in values]
        try:
            return pa.array(values, self._types[i])
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise StatementRejected(self._reason(self._columns[i], values, error)) from error

    def _reason(self, column: Column, values: list[object], error: Exception) -> str:
        if column.kind in WITH_DATE:
            example = next((value for value in values if isinstance(value, str)), "")
            return (
                f"column {column.name}: DuckDB has no {column.kind} {example!r}: name an empty target, with "
                "dates = 'text' in the sink's section"
            )
        return f"column {column.name}: {error}"


def _text_of(column: Column) -> Callable[[Any], str]:
    scale = column.scale
    if column.kind == "decimal":
        return lambda value: f"{value:.{scale}f}"
    return str if column.kind == "date" else lambda value: datetime_text(value, scale)
