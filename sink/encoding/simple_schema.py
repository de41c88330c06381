"""Definitions of tables in messages of the simple protocol."""

from __future__ import annotations

from typing import Any, Final, assert_never

from ...events import (
    FLOATS,
    Column,
)
from .definition import Definition, TableIndex, display_width, has_digits, type_name
from .json_text import base64_text
from .sql_default import constant, spelled

_DIGITS: Final = {"float": 12, "double": 22, "json": 4294967295, "date": 10, "year": 4}
_MOMENTS: Final = {"time": 10, "datetime": 19, "timestamp": 19}
_LOBS: Final = (255, 65535, 16777215, 4294967295)
"""Maximum bytes of texts and blobs, by the bytes of their length."""


def table_schema(definition: Definition) -> dict[str, Any]:
    table = definition.table
    return {
        "schema": table.schema,
        "table": table.name,
        "tableID": definition.table_id,
        "version": definition.version,
        "columns": list(map(_column, table.columns)),
        "indexes": [_index(definition, index) for index in definition.indexes],
    }


def _column(column: Column) -> dict[str, object]:
    kind: dict[str, object] = {
        "mysqlType": type_name(column),
        "charset": column.charset or "binary",
        "collate": column.collation or "binary",
        "length": _length(column),
    }
    if column.scale and column.kind not in FLOATS:
        kind["decimal"] = column.scale
    if column.members:
        kind["elements"] = list(column.members)
    if column.unsigned or column.kind in ("bit", "year"):
        kind["unsigned"] = True
    if column.zerofill or column.kind == "year":
        kind["zerofill"] = True
    return {"name": column.name, "dataType": kind, "nullable": column.nullable, "default": _default(column)}


def _length(column: Column) -> int:
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            return display_width(column)
        case "float" | "double" if has_digits(column):
            return column.length
        case "text" | "blob":
            return _LOBS[(column.length or 2) - 1]
        case "time" | "datetime" | "timestamp":
            return _MOMENTS[column.kind] + (column.scale + 1 if column.scale else 0)
        case "enum":
            return max(map(len, column.members))
        case "set":
            return sum(map(len, column.members)) + len(column.members) - 1
        case (
            "decimal" | "float" | "double" | "bit" | "char" | "varchar" | "binary" | "varbinary" | "date"
            | "year" | "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            return _DIGITS.get(column.kind, column.length)
        case _:
            assert_never(column.kind)


def _default(column: Column) -> object:
    constant_value = constant(column)
    if constant_value is None:
        text = column.default or ""
        return text if text.upper().startswith("CURRENT_TIMESTAMP") else None
    if isinstance(constant_value, bytes):
        return base64_text(constant_value)
    return constant_value if column.kind == "bit" else spelled(column)


def _index(definition: Definition, index: TableIndex) -> dict[str, object]:
    columns = [definition.table.columns[place] for place in index.columns]
    return {
        "name": index.name,
        "unique": index.unique,
        "primary": index.primary,
        "nullable": any(column.nullable for column in columns),
        "columns": [column.name for column in columns],
    }
