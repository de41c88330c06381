"""The types of tables in Spark, which represent every value exactly."""

from __future__ import annotations

from typing import Final

from pyspark.sql import types as t

from ...events import Column, Table
from .commit_time import with_commit_time

MOST_DIGITS: Final = 38
"""Maximum digits of a decimal; a column with more digits is a string."""

_SIMPLE: Final[dict[str, t.DataType]] = {
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "year": t.ShortType(),
    "date": t.DateType(),
    "datetime": t.TimestampNTZType(),
    "timestamp": t.TimestampType(),
    "time": t.DayTimeIntervalType(t.DayTimeIntervalType.DAY, t.DayTimeIntervalType.SECOND),
    **dict.fromkeys(("char", "varchar", "text", "enum", "set", "json"), t.StringType()),
    **dict.fromkeys(("uuid", "inet4", "inet6"), t.StringType()),
    **dict.fromkeys(("binary", "varbinary", "blob", "geometry", "vector"), t.BinaryType()),
}
_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_INTEGERS: Final[list[tuple[int, t.DataType]]] = [
    (8, t.ByteType()),
    (16, t.ShortType()),
    (32, t.IntegerType()),
    (64, t.LongType()),
]
_UNSIGNED_64: Final = t.DecimalType(20, 0)


def column_type(column: Column) -> t.DataType:
    """Return the narrowest type for all values of the column."""
    kind = column.kind
    if kind == "decimal":
        is_narrow = column.length <= MOST_DIGITS
        return t.DecimalType(column.length, column.scale) if is_narrow else t.StringType()
    if kind == "bit":
        return _integer(column.length + 1)
    if kind in _BITS:
        return _integer(_BITS[kind] + column.unsigned)
    return _SIMPLE[kind]


def _integer(bits: int) -> t.DataType:
    """Return the integer type of this many bits, the sign included."""
    return next((found for most, found in _INTEGERS if bits <= most), _UNSIGNED_64)


def envelope_type() -> t.StructType:
    """Return the type of the raw envelope."""
    return with_commit_time(exact_type())


def exact_type() -> t.StructType:
    """Return the same without `commit_time`, which sinks don't need."""
    from pyspark.sql.pandas.types import from_arrow_schema  # here, as one table's columns need no Arrow

    from ..envelope import ENVELOPE

    return from_arrow_schema(ENVELOPE)


def row_type(table: Table) -> t.StructType:
    """Return the type of a row; every column is nullable, since a change may be older than the column."""
    return t.StructType([t.StructField(c.name, column_type(c)) for c in table.columns])


def table_type(table: Table) -> t.StructType:
    """Return the type of one table's changes, with its columns in `before` and `after`."""
    return with_commit_time(change_type(table))


def full_type(table: Table | None) -> t.StructType:
    """Return the type of one table's changes, or without a table of the raw envelope."""
    return envelope_type() if table is None else table_type(table)


def change_type(table: Table) -> t.StructType:
    """Return the same without `commit_time`."""
    row = row_type(table)
    order = [t.StructField(name, t.LongType(), False) for name in ("commit_ts", "start_ts", "sequence")]
    images = [t.StructField(name, row) for name in ("before", "after")]
    return t.StructType([*order, t.StructField("op", t.StringType(), False), *images])
