"""Schemas of Iceberg tables, from the columns of their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from ....errors import InvariantViolated, SinkError
from .columns import DATE

_ORDER: Final = ("commit_ts", "start_ts", "sequence")
_FIRST_PARTITION_ID: Final = 1000
FIELD_ID: Final = "PARQUET:field_id"
"""Key of Arrow's metadata of a field for its id in a Parquet file."""


def planned(base: Schema | None, last_id: int, columns: pa.Schema) -> Schema:
    """Return a schema with the columns of a file, too: new ones get ids above `last_id`. Without a base, ids
    are those that a catalog gives to a new table."""
    if base is None:
        ids = count(1)
        return assign_fresh_schema_ids(Schema(*[_field(field, ids) for field in columns]))
    return Schema(*_widened(base.fields, columns, count(last_id + 1)))


def is_fresh(schema: Schema) -> bool:
    """Return True if a catalog makes a new table with the ids that the schema has."""
    return assign_fresh_schema_ids(schema) == schema


def merged(name: str, base: Schema, others: Iterable[Schema]) -> Schema:
    """Return a table's schema with the columns of files, by their ids. Raises SinkError if another program
    has given one of the ids or names."""
    for other in others:
        fields = _merged(name, base.fields, other.fields)
        base = Schema(*fields, identifier_field_ids=base.identifier_field_ids)
    ids = list(_ids(base.fields))
    if len({*ids}) != len(ids):
        raise _changed(name)
    return base


def numbered(columns: pa.Schema, schema: Schema) -> pa.Schema:
    """Return the columns of a file with their ids."""
    return pa.schema(_numbered(columns, schema.fields), columns.metadata)


def iceberg_type(kind: pa.DataType) -> IcebergType:
    """Return the type of a column that isn't a struct."""
    return _type(kind, count())


def partitions(schema: Schema) -> PartitionSpec:
    """Return the partition of rows by the day of their commit."""
    source = schema.find_field(DATE).field_id
    return PartitionSpec(PartitionField(source, _FIRST_PARTITION_ID, IdentityTransform(), DATE))


def order(schema: Schema) -> SortOrder:
    """Return the order of rows in files: that of their commits."""
    names = [name for name in _ORDER if name in schema.column_names]
    return SortOrder(*[SortField(schema.find_field(name).field_id, IdentityTransform()) for name in names])


def _widened(
    fields: Iterable[NestedField], columns: Iterable[pa.Field], ids: count[int]
) -> list[NestedField]:
    wanted = {column.name: column for column in columns}
    have = []
    for field in fields:
        column = wanted.pop(field.name, None)
        have.append(field if column is None else _both(field, column, ids))
    return [*have, *[_field(column, ids) for column in wanted.values()]]


def _both(field: NestedField, column: pa.Field, ids: count[int]) -> NestedField:
    inner = field.field_type
    if isinstance(inner, StructType) and pa.types.is_struct(column.type):
        return _as(field, _widened(inner.fields, column.type, ids))
    return field


def _merged(name: str, fields: Iterable[NestedField], others: Iterable[NestedField]) -> list[NestedField]:
    wanted = {other.name: other for other in others}
    have = []
    for field in fields:
        other = wanted.pop(field.name, None)
        if other is not None and other.field_id != field.field_id:
            raise _changed(name)
        inner, more = field.field_type, other and other.field_type
        if isinstance(inner, StructType) and isinstance(more, StructType):
            have.append(_as(field, _merged(name, inner.fields, more.fields)))
        else:
            have.append(field)
    return [*have, *wanted.values()]


def _ids(fields: Iterable[NestedField]) -> Iterator[int]:
    for field in fields:
        yield field.field_id
        if isinstance(field.field_type, StructType):
            yield from _ids(field.field_type.fields)


def _changed(name: str) -> SinkError:
    return SinkError(
        f"{name}: another program added or renamed columns while the feed wrote files: give the feed another "
        "prefix, where it loads all tables"
    )


def _as(field: NestedField, fields: list[NestedField]) -> NestedField:
    return NestedField(field.field_id, field.name, StructType(*fields), required=field.required)


def _numbered(columns: Iterable[pa.Field], fields: Iterable[NestedField]) -> list[pa.Field]:
    known = {field.name: field for field in fields}
    return [_with_id(column, known[column.name]) for column in columns]


def _with_id(column: pa.Field, field: NestedField) -> pa.Field:
    kind = column.type
    if isinstance(field.field_type, StructType) and pa.types.is_struct(kind):
        kind = pa.struct(_numbered(kind, field.field_type.fields))
    return pa.field(column.name, kind, column.nullable, {FIELD_ID: str(field.field_id)})


def _field(field: pa.Field, ids: count[int]) -> NestedField:
    number = next(ids)
    return NestedField(number, field.name, _type(field.type, ids), required=not field.nullable)


def _type(kind: pa.DataType, ids: count[int]) -> IcebergType:
    is_ = pa.types
    if is_.is_struct(kind):
        return StructType(*[_field(field, ids) for field in kind])
    if is_.is_int64(kind):
        return LongType()
    if is_.is_int32(kind):
        return IntegerType()
    if is_.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale)
    if is_.is_float64(kind):
        return DoubleType()
    if is_.is_float32(kind):
        return FloatType()
    if is_.is_boolean(kind):
        return BooleanType()
    if is_.is_date32(kind):
        return DateType()
    if is_.is_string(kind) or is_.is_large_string(kind):
        return StringType()
    if is_.is_binary(kind) or is_.is_large_binary(kind):
        return BinaryType()
    raise InvariantViolated(f"files of a lake have no columns of the type {kind}")
