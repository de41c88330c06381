"""Definitions of tables in Debezium's messages about schema changes, as TiCDC writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, assert_never

from ...codec.tidb.action import Action as JobType
from ...events import (
    DISPLAY_WIDTHS,
    AddColumn,
    ChangeColumn,
    Column,
    CreateTable,
    Ddl,
    DropTable,
    Kind,
    RenameTables,
    Table,
    TruncateTable,
)
from .definition import Definition, display_width, has_digits, type_name
from .definitions import Effect
from .sql_default import constant, spelled
from .statement_kind import statement_kind

_JDBC_TYPES: Final[dict[Kind, int]] = {
    "tinyint": 5, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "float": 6, "double": 8,
    "decimal": 3, "bit": -7, "char": -15, "varchar": 12, "text": 12, "binary": -2, "varbinary": -3,
    "blob": 2004, "date": 91, "time": 92, "datetime": 93, "timestamp": 2014, "year": 4, "enum": 1, "set": 1,
    "json": 1111, "vector": 12, "uuid": 12, "inet4": 12, "inet6": 12, "geometry": 1111,
}  # fmt: skip
_BARE: Final = frozenset(("year", "bit", "varchar", "char", "binary", "varbinary", "decimal"))
"""Kinds whose types are written without attributes."""
_USUAL_LENGTHS: Final[dict[Kind, int]] = {"bit": 1, "char": 1, "binary": 1, "varchar": 5, "varbinary": 5}
"""Lengths that aren't written, as if they were defaults."""
_BYTE: Final = 8


def table_changes(ddl: Ddl, effects: Sequence[Effect]) -> list[dict[str, Any]]:
    """Return the tables after a statement, as far as they are known."""
    match ddl.actions:
        case [TruncateTable()]:
            return []
        case [DropTable()]:
            return [{"type": "DROP", "id": _id(ddl.schema, ddl.table), "table": None}]
    kind = "ALTER"
    if isinstance(next(iter(ddl.actions), None), CreateTable):
        kind = "CREATE"
    elif statement_kind(ddl).number == JobType.DROP_INDEX:
        kind = "DROP"
    changes = []
    for before, after in effects:
        if after is None:
            continue
        name = _id(after.table.schema, after.table.name)
        if before is not None and isinstance(ddl.actions[0], RenameTables):
            name = f"{_id(before.table.schema, before.table.name)},{name}"
        changes.append({"type": kind, "id": name, "table": _table(after, _told(ddl, after.table))})
    return changes


def _id(schema: str, table: str) -> str:
    return f'"{schema}"."{table}"'


def _told(ddl: Ddl, table: Table) -> set[str]:
    """Return the names of the columns that the statement defines."""
    names = set()
    for action in ddl.actions:
        match action:
            case CreateTable():
                return {column.name for column in table.columns}
            case AddColumn(column) | ChangeColumn(column=column):
                names.add(column.name)
    return names


def _table(definition: Definition, told: set[str]) -> dict[str, object]:
    table = definition.table
    return {
        "defaultCharsetName": table.charset,
        "primaryKeyColumnNames": [table.columns[place].name for place in table.key],
        "columns": [
            _column(definition, place, is_told=column.name in told)
            for place, column in enumerate(table.columns)
        ],
        "comment": None,
    }


def _column(definition: Definition, place: int, *, is_told: bool) -> dict[str, object]:
    column = definition.table.columns[place]
    details = definition.details.of_column(column.name)
    members = [f"'{member}'" for member in column.members]
    is_automatic = details.auto_increment or (column.kind == "timestamp" and column.on_update is not None)
    name = type_name(column).upper()
    signs = ""
    if column.unsigned and column.kind not in _BARE:
        signs = " UNSIGNED ZEROFILL" if column.zerofill else " UNSIGNED"
    return {
        "name": column.name,
        "jdbcType": _JDBC_TYPES[column.kind],
        "nativeType": None,
        "comment": (not is_told and details.comment) or None,
        "defaultValueExpression": _default(column),
        "enumValues": members or None,
        "typeName": name + signs,
        "typeExpression": name + _arguments(column) + signs,
        "charsetName": column.charset,
        "length": _length(column, is_told=is_told),
        "scale": column.scale if column.kind == "decimal" or has_digits(column) else None,
        "position": place + 1,
        "optional": column.nullable,
        "autoIncremented": is_automatic,
        "generated": is_automatic,
    }


def _arguments(column: Column) -> str:
    match column.kind:
        case "double" if column.scale:
            return f"({column.length},{column.scale})"
        case "vector" if column.length:
            return f"({column.length})"
    return ""


def _length(column: Column, *, is_told: bool) -> int | None:
    """Return the length; that of a time or year is also written as 0 and 4 unless the statement tells it."""
    match column.kind:
        case "time" | "datetime" | "timestamp":
            return column.scale or (None if is_told else 0)
        case "year":
            return None if is_told else 4
        case "decimal":
            return column.length
        case "enum":
            return 1
        case "set":
            return 2 * len(column.members) - 1
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            return _width(column)
        case "float" | "double" if has_digits(column):
            return column.length
        case "bit" | "char" | "varchar" | "binary" | "varbinary" | "vector":
            return None if column.length == _USUAL_LENGTHS.get(column.kind, 0) else column.length
        case "float" | "double" | "text" | "blob" | "date" | "json" | "uuid" | "inet4" | "inet6" | "geometry":
            return None
        case _:
            assert_never(column.kind)


def _width(column: Column) -> int | None:
    """Return the display width unless it is the one that TiCDC holds for the default."""
    usual = DISPLAY_WIDTHS[column.kind][False]
    if column.unsigned and column.kind != "bigint":
        usual -= 1
    if column.kind == "tinyint" and column.zerofill:
        usual += 1
    width = display_width(column)
    return None if width == usual else width


def _default(column: Column) -> str | None:
    text = column.default or ""
    if text.upper().startswith("CURRENT_TIMESTAMP"):
        return "1970-01-01 00:00:00"
    constant_value = constant(column)
    match constant_value:
        case None:
            return spelled(column) if column.kind == "time" and text.startswith("'") else None
        case int() if column.kind == "bit":
            first, *rest = constant_value.to_bytes((column.length + _BYTE - 1) // _BYTE)
            return f"{first:0{column.length % _BYTE}b}" + "".join(f"{byte:08b}" for byte in rest)
        case bytes():
            return constant_value.decode("utf-8", "replace")
    return spelled(column)
