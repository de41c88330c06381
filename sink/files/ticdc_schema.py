"""Schema files of TiCDC's storage layout: a table's columns as JSON, with a checksum.

Source: TiCDC's documentation of its storage sink, and its published code.
"""

from __future__ import annotations

import json
from typing import Final, assert_never
from zlib import crc32

from ...events import Column, Table, Ts
from ..encoding.definition import display_width, has_digits, type_name
from ..encoding.json_text import html
from ..encoding.sql_default import spelled

_VERSION: Final = 1
_SCALED: Final = ("float", "double", "time", "datetime", "timestamp")
_LENGTHS: Final = (0xFF, 0xFFFF, 0xFF_FFFF, 0xFFFF_FFFF)
"""Longest texts and blobs, by the bytes of their length, from 1."""

KEY_COLUMNS: Final = [
    {"ColumnName": name, "ColumnType": kind, "ColumnPrecision": size, "ColumnNullable": "false"}
    for name, kind, size in (
        ("_tidemill_source", "VARCHAR", "255"),
        ("_tidemill_ts", "BIGINT UNSIGNED", "20"),
        ("_tidemill_n", "BIGINT", "20"),
    )
]
"""Columns of the key of each row, after those of its table."""


def columns_of(table: Table) -> list[dict[str, str]]:
    """Return the columns of a table."""
    return [_column(table, place, column) for place, column in enumerate(table.columns)]


def schema_text(
    table: Table, version: Ts, columns: list[dict[str, str]], query: str = "", number: int = 0
) -> str:
    """Return the content of a schema file. `query` is the statement, `number` TiDB's one for its kind."""
    return _text(
        {
            "Table": table.name,
            "Schema": table.schema,
            "Version": _VERSION,
            "TableVersion": version,
            "Query": query,
            "Type": number,
            "TableColumns": columns,
            "TableColumnsTotal": len(columns),
        }
    )


def schema_checksum(schema: str, table: str, columns: list[dict[str, str]]) -> int:
    """Return the CRC-32 of a definition, whatever the order of its columns, its version and statement."""
    definition = {
        "Table": table,
        "Schema": schema,
        "Version": 0,
        "TableColumns": sorted(columns, key=lambda column: column["ColumnName"].encode()),
        "TableColumnsTotal": len(columns),
    }
    return crc32(_text(definition).encode())


def schema_name(version: Ts, checksum: int) -> str:
    return f"schema_{version}_{checksum:010}.json"


def _text(document: dict[str, object]) -> str:
    """Return JSON as Go indents and escapes it."""
    return html(json.dumps(document, indent=4, ensure_ascii=False).encode()).decode()


def _column(table: Table, place: int, column: Column) -> dict[str, str]:
    bare = type_name(column).upper()
    is_unsigned = column.unsigned and column.kind not in ("bit", "year")
    fields = {"ColumnName": column.name, "ColumnType": bare + " UNSIGNED" * is_unsigned}
    if column.default is not None and column.default.upper() != "NULL" and column.kind != "bit":
        fields["ColumnDefault"] = spelled(column)
    if precision := _precision(column):
        fields["ColumnPrecision"] = str(precision)
    if column.kind == "decimal" or (column.kind in _SCALED and column.scale):
        fields["ColumnScale"] = str(column.scale)
    if not column.nullable:
        fields["ColumnNullable"] = "false"
    if place in table.key:
        fields["ColumnIsPk"] = "true"
    return fields


def _precision(column: Column) -> int:
    """Return the length that TiCDC writes for a column; 0 if it writes none."""
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            return display_width(column)
        case "decimal" | "bit" | "char" | "varchar" | "binary" | "varbinary":
            return column.length
        case "text" | "blob":
            return _LENGTHS[(column.length or 2) - 1]
        case "float" | "double" if has_digits(column):
            return column.length
        case "float":
            return 12
        case "double":
            return 22
        case "year":
            return 4
        case (
            "date" | "time" | "datetime" | "timestamp" | "enum" | "set" | "json" | "uuid" | "inet4"
            | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            return 0
        case _:
            assert_never(column.kind)
