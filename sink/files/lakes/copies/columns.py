"""The columns of a copy: those of the source's table by name, in types that lakes have.

docs/reference/lake-copies.md lists the types.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from .....dialects.conversion import keeps_text, keeps_values
from .....events import Column, Table
from ...parquet_columns import arrow_type

_UNSIGNED: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
"""The smallest type that holds all values of an unsigned one, which lakes don't have."""


def copy_schema(table: Table) -> pa.Schema:
    """Return the columns of a copy's files."""
    return pa.schema([pa.field(one.name, _type(one), one.nullable) for one in table.columns])


def keyless(table: Table) -> str:
    """Return why a table without a key can't be copied, as a sentence; empty if it has one."""
    if not table.key:
        return (
            f"{table.full_name} has no primary key, by which its copy's rows are found: give it one, leave "
            'it out of `tables`, or use mode = "history"'
        )
    return ""


def is_same_layout(one: Table, other: Table) -> bool:
    """Return True if two tables have the same columns in a copy, and the same key."""
    return copy_schema(one).equals(copy_schema(other)) and key_names(one) == key_names(other)


def key_names(table: Table) -> list[str]:
    return [table.columns[index].name for index in table.key]


def keeps(before: Column, after: Column) -> bool:
    """Return True if the stored values of a column, cast to the new type, are those of the source after the
    change."""
    is_text = pa.types.is_large_string(_type(before))
    if is_text != pa.types.is_large_string(_type(after)):
        return False
    return (keeps_text if is_text else keeps_values)(before, after)


def _type(column: Column) -> pa.DataType:
    kind = arrow_type(column)
    return _UNSIGNED.get(kind, kind)
