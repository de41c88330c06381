"""PostgreSQL's type for each kind of column: the table of docs/postgres-types.md."""

from __future__ import annotations

from typing import Final

from ...events import Column, Kind

DATES: Final = {"date", "datetime", "timestamp"}
"""Kinds with values that PostgreSQL lacks, such as 0000-00-00."""
TEXTS: Final = {"char", "varchar", "text", "enum", "set", "json"}
BINARIES: Final = {"binary", "varbinary", "blob", "geometry", "vector"}
INTEGERS: Final = {"tinyint", "smallint", "mediumint", "int", "bigint", "year"}

_SIGNED: Final[dict[Kind, str]] = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "mediumint": "integer",
    "int": "integer",
    "bigint": "bigint",
    "year": "smallint",
}
_UNSIGNED: Final[dict[Kind, str]] = {
    "tinyint": "smallint",
    "smallint": "integer",
    "mediumint": "integer",
    "int": "bigint",
    "bigint": "numeric(20,0)",
    "year": "smallint",
}


def declared_type(column: Column, *, dates_as_text: bool = False) -> str:
    """Return the type as format_type() prints it."""
    kind = column.kind
    if kind in INTEGERS:
        return (_UNSIGNED if column.unsigned else _SIGNED)[kind]
    if kind in BINARIES:
        return "bytea"
    if kind in DATES and dates_as_text:
        return "text"
    match kind:
        case "decimal":
            return f"numeric({column.length},{column.scale})"
        case "float":
            return "real"
        case "double":
            return "double precision"
        case "bit":
            return f"bit({column.length})"
        case "char" | "varchar" if column.length:
            return f"character varying({column.length})"
        case "date":
            return "date"
        case "time":
            return f"interval({column.scale})"
        case "datetime":
            return f"timestamp({column.scale}) without time zone"
        case "timestamp":
            return f"timestamp({column.scale}) with time zone"
        case "json" | "uuid":
            return kind
        case "inet4" | "inet6":
            return "inet"
    return "text"
