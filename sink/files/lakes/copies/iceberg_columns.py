"""The columns of a copy in Iceberg: files have them by ids, which stay when names and types change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
)

from .....errors import SinkError
from .....events import Table
from ..iceberg_schema import FIELD_ID, iceberg_type, numbered
from .alteration import Alteration
from .columns import copy_schema, key_names


class IcebergColumns:
    """CopyColumns by a schema of Iceberg."""

    def __init__(self, name: str, schema: Schema, last_id: int) -> None:
        """`name` is the table's, for errors. `last_id` is the greatest id that a column ever had."""
        self.schema: Final = schema
        self.last_id: Final = last_id
        self._name: Final = name

    def altered(self, table: Table, origins: Mapping[str, str] | None = None) -> IcebergColumns:
        ids = count(self.last_id + 1)
        have = {field.name: field for field in self.schema.fields}
        fields = list(self._fields(table, {name: name for name in have} if origins is None else origins, ids))
        key = [field for name in key_names(table) for field in fields if field.name == name]
        can_identify = all(
            field.required and not isinstance(field.field_type, (DoubleType, FloatType)) for field in key
        )
        own = [field.field_id for field in key] if can_identify else []
        return IcebergColumns(self._name, Schema(*fields, identifier_field_ids=own), next(ids) - 1)

    def _fields(self, table: Table, origins: Mapping[str, str], ids: count[int]) -> Iterator[NestedField]:
        have = {field.name: field for field in self.schema.fields}
        for column in copy_schema(table):
            kind = iceberg_type(_stored(column.type))
            before = None
            if column.name in origins:
                before = have.get(origins[column.name])
                if before is None:
                    raise self._missing(origins[column.name])
            keeps = before is not None and _is_read_as(before.field_type, kind)
            number = before.field_id if before is not None and keeps else next(ids)
            yield NestedField(number, column.name, kind, required=not column.nullable)

    def keep_files(self, before: Table, change: Alteration) -> bool:  # noqa: ARG002
        """Return True if every column keeps its id, or is new and NULL."""
        have = {field.name: field.field_id for field in self.schema.fields}
        return all(
            not change.values[field.name].is_valid
            if field.name in change.values
            else have[change.origins[field.name]] == field.field_id
            for field in self.altered(change.table, change.origins).schema.fields
        )

    def names(self, schema: pa.Schema) -> dict[str, str]:
        files = {field.metadata[FIELD_ID.encode()]: field.name for field in schema if field.metadata}
        names = {field.name: files.get(str(field.field_id).encode()) for field in self.schema.fields}
        return {name: own for name, own in names.items() if own is not None}

    def stored(self, schema: pa.Schema) -> pa.Schema:
        known = self.schema.column_names
        for name in schema.names:
            if name not in known:
                raise self._missing(name)
        fields = [pa.field(one.name, _stored(one.type), one.nullable) for one in schema]
        return numbered(pa.schema(fields), self.schema)

    def _missing(self, name: str) -> SinkError:
        return SinkError(
            f"{self._name}: another program removed or renamed the column {name}: load the table again"
        )


def _stored(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind in (pa.int8(), pa.int16()) else kind


def _is_read_as(before: IcebergType, after: IcebergType) -> bool:
    """Return True if readers take values of a type in files as those of another one."""
    match before, after:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case (DecimalType(), DecimalType()):
            return before.scale == after.scale and before.precision <= after.precision
    return before == after
