"""Schemas of Iceberg tables, from the columns of their files."""

from __future__ import annotations

from itertools import count
from typing import Final

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from ....errors import InvariantViolated
from .columns import DATE

_ORDER: Final = ("commit_ts", "start_ts", "sequence")
_FIRST_PARTITION_ID: Final = 1000


def iceberg_schema(columns: pa.Schema) -> Schema:
    """Return the schema of a new table; the catalog gives the final ids."""
    ids = count(1)
    return Schema(*[_field(field, ids) for field in columns])


def partitions(schema: Schema) -> PartitionSpec:
    """Return the partition of rows by the day of their commit."""
    source = schema.find_field(DATE).field_id
    return PartitionSpec(PartitionField(source, _FIRST_PARTITION_ID, IdentityTransform(), DATE))


def order(schema: Schema) -> SortOrder:
    """Return the order of rows in files: that of their commits."""
    names = [name for name in _ORDER if name in schema.column_names]
    return SortOrder(*[SortField(schema.find_field(name).field_id, IdentityTransform()) for name in names])


def _field(field: pa.Field, ids: count[int]) -> NestedField:
    number = next(ids)
    return NestedField(number, field.name, _type(field.type, ids), required=not field.nullable)


def _type(kind: pa.DataType, ids: count[int]) -> IcebergType:
    is_ = pa.types
    if is_.is_struct(kind):
        return StructType(*[_field(field, ids) for field in kind])
    if is_.is_int64(kind):
        return LongType()
    if is_.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale)
    if is_.is_float64(kind):
        return DoubleType()
    if is_.is_boolean(kind):
        return BooleanType()
    if is_.is_date32(kind):
        return DateType()
    if is_.is_string(kind) or is_.is_large_string(kind):
        return StringType()
    if is_.is_binary(kind) or is_.is_large_binary(kind):
        return BinaryType()
    raise InvariantViolated(f"files of a lake have no columns of the type {kind}")
