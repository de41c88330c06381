"""The columns of a copy in Delta: files have them by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
import pyarrow as pa

from .....events import Table
from .alteration import Alteration
from .columns import copy_schema, keyless

_NOT_IN_NAMES: Final = " ,;{}()\n\t="
"""Characters that a column's name in a Delta table can't have."""
_NAMES: Final = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.large_string(): "string",
    pa.large_binary(): "binary",
}


def refusal(table: Table) -> str:
    """Return why Delta can't have a copy of a table, as a sentence; empty if it can."""
    for column in table.columns:
        if any(letter in column.name for letter in _NOT_IN_NAMES):
            return (
                f"{table.full_name}: a Delta table can't have a column {column.name!r}: rename it, leave the "
                "table out of `tables`, or drop the column by [[transform]]"
            )
    return keyless(table)


def schema_string(table: Table) -> str:
    """Return the columns of a copy as a Delta log describes them."""
    fields = [
        {"name": field.name, "type": _delta_name(field.type), "nullable": field.nullable, "metadata": {}}
        for field in copy_schema(table)
    ]
    return msgspec.json.encode({"type": "struct", "fields": fields}).decode()


class DeltaColumns:
    """CopyColumns without column mapping."""

    def altered(self, table: Table, origins: Mapping[str, str] | None = None) -> DeltaColumns:  # noqa: ARG002
        return self

    def keep_files(self, before: Table, change: Alteration) -> bool:
        """Return True if no name and no type changes, and a column that files lack is NULL."""
        have, schema = copy_schema(before), copy_schema(change.table)
        return all(name in change.origins.values() for name in have.names) and all(
            not change.values[field.name].is_valid
            if field.name in change.values
            else change.origins[field.name] == field.name and have.field(field.name).type == field.type
            for field in schema
        )

    def names(self, schema: pa.Schema) -> dict[str, str]:
        return {name: name for name in schema.names}

    def stored(self, schema: pa.Schema) -> pa.Schema:
        return schema


def _delta_name(kind: pa.DataType) -> str:
    return f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal(kind) else _NAMES[kind]
