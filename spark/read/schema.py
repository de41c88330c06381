"""The types of tables in Spark, which represent every value exactly."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, assert_never

import msgspec
from pyspark.sql import types as t

from ...events import Column, Table
from .commit_time import with_commit_time

_TABLE: Final = "tidemill.table"
"""Metadata of the column `after`: the definition of its table."""
_OPERATIONS: Final = "tidemill.operations"
"""Metadata of the column `op`: the option `operations` if it leaves schema changes out."""

MOST_DIGITS: Final = 38
"""Maximum digits of a decimal; a column with more digits is a string."""

_INTEGERS: Final[list[tuple[int, t.DataType]]] = [
    (8, t.ByteType()),
    (16, t.ShortType()),
    (32, t.IntegerType()),
    (64, t.LongType()),
]
_UNSIGNED_64: Final = t.DecimalType(20, 0)


def column_type(column: Column) -> t.DataType:
    """Return the narrowest type for all values of the column."""
    match column.kind:
        case "tinyint":
            return _integer(8 + column.unsigned)
        case "smallint":
            return _integer(16 + column.unsigned)
        case "mediumint":
            return _integer(24 + column.unsigned)
        case "int":
            return _integer(32 + column.unsigned)
        case "bigint":
            return _integer(64 + column.unsigned)
        case "bit":
            return _integer(column.length + 1)
        case "decimal":
            is_narrow = column.length <= MOST_DIGITS
            return t.DecimalType(column.length, column.scale) if is_narrow else t.StringType()
        case "float":
            return t.FloatType()
        case "double":
            return t.DoubleType()
        case "year":
            return t.ShortType()
        case "date":
            return t.DateType()
        case "datetime":
            return t.TimestampNTZType()
        case "timestamp":
            return t.TimestampType()
        case "time":
            return t.DayTimeIntervalType(t.DayTimeIntervalType.DAY, t.DayTimeIntervalType.SECOND)
        case "char" | "varchar" | "text" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6":
            return t.StringType()
        case "binary" | "varbinary" | "blob" | "geometry" | "vector":
            return t.BinaryType()
        case _:
            assert_never(column.kind)


def _integer(bits: int) -> t.DataType:
    """Return the integer type of this many bits, the sign included."""
    return next((type_ for most, type_ in _INTEGERS if bits <= most), _UNSIGNED_64)


def envelope_type() -> t.StructType:
    """Return the type of the raw envelope."""
    return with_commit_time(exact_type())


def exact_type() -> t.StructType:
    """Return the same without `commit_time`, which sinks don't need."""
    from pyspark.sql.pandas.types import from_arrow_schema  # here, as one table's columns need no Arrow

    from ..envelope import ENVELOPE

    return from_arrow_schema(ENVELOPE)


def with_operations(schema: t.StructType, operations: Collection[str]) -> t.StructType:
    """Return the schema; its column `op` says so if schema changes aren't among the operations."""
    if "ddl" in operations or "op" not in schema.names:
        return schema
    fields = [
        t.StructField("op", one.dataType, one.nullable, {_OPERATIONS: ",".join(operations)})
        if one.name == "op"
        else one
        for one in schema
    ]
    return t.StructType(fields)


def operations_of(schema: t.StructType) -> Collection[str]:
    """Return the operations of a frame with this schema, as far as `with_operations` noted them."""
    text: str = schema["op"].metadata.get(_OPERATIONS, "ddl") if "op" in schema.names else "ddl"
    return text.split(",")


def lacks_schema_changes(schema: t.StructType) -> bool:
    """True if a frame with this schema was read without schema changes."""
    return "ddl" not in operations_of(schema)


def told_table(schema: t.StructType) -> Table | None:
    """Return the table whose rows a frame with this schema has; None if the schema doesn't tell."""
    text = schema["after"].metadata.get(_TABLE) if "after" in schema.names else None
    return None if text is None else read_table(text)


def table_text(table: Table) -> str:
    return msgspec.json.encode(table).decode()


def read_table(text: str) -> Table:
    return msgspec.json.decode(text, type=Table)


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
    images = [t.StructField("before", row), t.StructField("after", row, True, {_TABLE: table_text(table)})]
    return t.StructType([*order, t.StructField("op", t.StringType(), False), *images])
