"""PostgreSQL's type for each kind of column: the table of docs/reference/postgres.md."""

from __future__ import annotations

from typing import Final, assert_never

from ...events import AS_BYTES, WITH_DATE, Column, Kind

TEXTS: Final = {"char", "varchar", "text", "enum", "set", "json"}
INTEGERS: Final[frozenset[Kind]] = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})

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
    if kind in AS_BYTES:
        return "bytea"
    if kind in WITH_DATE and dates_as_text:
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
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "char" | "varchar" | "text"
            | "binary" | "varbinary" | "blob" | "year" | "enum" | "set" | "geometry" | "vector"
        ):  # fmt: skip
            return "text"
        case _:
            assert_never(kind)
