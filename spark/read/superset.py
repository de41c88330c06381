"""Tables whose columns hold the rows of several layouts without loss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace
from pyspark.sql import types as t

from ...errors import ConfigError, SourceError
from ...events import Column, Kind, Table
from .schema import column_type
from .widening import wider_type

_KINDS: Final[dict[t.DataType, Kind]] = {
    t.ByteType(): "tinyint",
    t.ShortType(): "smallint",
    t.IntegerType(): "int",
    t.LongType(): "bigint",
    t.FloatType(): "float",
    t.DoubleType(): "double",
    t.StringType(): "text",
    t.BinaryType(): "blob",
    t.DateType(): "date",
    t.TimestampNTZType(): "datetime",
    t.TimestampType(): "timestamp",
    t.DayTimeIntervalType(t.DayTimeIntervalType.DAY, t.DayTimeIntervalType.SECOND): "time",
}


def superset(tables: Iterable[Table]) -> Table:
    """Return the last table with the columns that only earlier ones have, and with types that hold the values
    of all. Raises SourceError if there is no such type for a column."""
    columns: dict[str, Column] = {}
    last: Table | None = None
    for table in tables:
        older, columns = columns, {}
        for column in table.columns:
            columns[column.name] = _joined(table, older.get(column.name, column), column)
        columns |= {name: column for name, column in older.items() if name not in columns}
        last = table
    assert last is not None
    names = list(columns)
    key = tuple([names.index(last.columns[index].name) for index in last.key])
    return replace(last, columns=tuple(columns.values()), key=key)


def with_columns_of(table: Table, schema: t.StructType) -> Table:
    """Return the table with the columns that the structs of `schema` name, for images of rows.

    Raises ConfigError if they differ, or have a type that no column of a source has.
    """
    rows = {name: schema[name].dataType for name in ("before", "after") if name in schema.names}
    if not rows:
        return table
    row, *others = rows.values()
    if not isinstance(row, t.StructType) or any(other != row for other in others):
        raise ConfigError("schema: before and after are the same struct of the table's columns")
    own = {column.name: column for column in table.columns}
    columns = []
    for field in row:
        column = own.get(field.name)
        is_own = column is not None and column_type(column) == field.dataType
        columns.append(column if column is not None and is_own else _column(field.name, field.dataType))
    return replace(table, columns=tuple(columns), key=())


def narrowed(table: Table, schema: t.StructType) -> Table:
    """Return the table with only the columns that the structs of `schema` name.

    Without a struct only one column is left. Raises ConfigError for other columns or types.
    """
    if not {"before", "after"} & set(schema.names):
        return replace(table, columns=table.columns[:1], key=())
    narrowed_table = with_columns_of(table, schema)
    names = [column.name for column in table.columns]
    for column in narrowed_table.columns:
        if column.name not in names:
            raise ConfigError(
                f"schema: {table.full_name} has no column {column.name}; it has {', '.join(names)}"
            )
        types = column_type(table.columns[names.index(column.name)]), column_type(column)
        if types[0] != types[1]:
            raise ConfigError(
                f"schema: column {column.name} is {types[0].simpleString()}, not {types[1].simpleString()}; "
                "name columns as they are"
            )
    return narrowed_table


def _joined(table: Table, older: Column, column: Column) -> Column:
    types = column_type(older), column_type(column)
    wider = wider_type(*types)
    if wider is None:
        raise SourceError(
            f"column {column.name} of {table.full_name} was {types[0].simpleString()} and is "
            f"{types[1].simpleString()} now, and no type holds both: read these changes in the raw envelope"
        )
    return column if wider == types[1] else _column(column.name, wider)


def _column(name: str, type_: t.DataType) -> Column:
    """Return a column of this type in Spark."""
    if isinstance(type_, t.DecimalType):
        return Column(name, "decimal", length=type_.precision, scale=type_.scale)
    if type_ not in _KINDS:
        raise ConfigError(f"schema: column {name} is {type_.simpleString()}, which no column of a source has")
    return Column(name, _KINDS[type_])
