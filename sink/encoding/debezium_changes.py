"""Definitions of tables in Debezium's messages about schema changes."""

from __future__ import annotations

from typing import Any, Final

from ...events import Column, Kind
from .canal_types import sql_type
from .definition import Definition, bare_type
from .sql_default import constant

_LENGTHS: Final = frozenset(("char", "varchar", "binary", "varbinary", "bit", "decimal"))
_OTHER_TYPES: Final[dict[Kind, int]] = {"enum": 1, "set": 1, "timestamp": 2014, "year": 4}
"""Numbers of JDBC types that differ from Canal's."""


def table_change(kind: str, definition: Definition) -> dict[str, Any]:
    """Return one of `tableChanges`."""
    table = definition.table
    return {
        "type": kind,
        "id": f'"{table.schema}"."{table.name}"',
        "table": {
            "defaultCharsetName": table.charset,
            "primaryKeyColumnNames": [table.columns[place].name for place in table.key],
            "columns": [_column(definition, place) for place in range(len(table.columns))],
            "comment": None,
        },
    }


def _column(definition: Definition, place: int) -> dict[str, Any]:
    column = definition.table.columns[place]
    type_name = bare_type(definition, column).upper()
    members = ["'" + member.replace("'", "''") + "'" for member in column.members]
    return {
        "name": column.name,
        "jdbcType": _OTHER_TYPES.get(column.kind, sql_type(column)),
        "nativeType": None,
        "comment": None,
        "defaultValueExpression": _default(column),
        "enumValues": members or None,
        "typeName": type_name,
        "typeExpression": type_name,
        "charsetName": column.charset,
        "length": column.length if column.kind in _LENGTHS else None,
        "scale": column.scale if column.kind == "decimal" else None,
        "position": place + 1,
        "optional": column.nullable,
        "autoIncremented": False,
        "generated": column.generated,
    }


def _default(column: Column) -> str | None:
    found = constant(column)
    if found is None:
        return None
    return f"{found:0{column.length}b}" if column.kind == "bit" else str(found)
