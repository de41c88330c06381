"""Parsing of the types of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, assert_never, get_args

from ...events import (
    WITH_MEMBERS,
    Kind,
    display_width,
)
from .tokens import REAL_AS_FLOAT, NotUnderstood, Tokens

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_TYPES: Final[dict[str, Kind]] = {
    **{kind.upper(): kind for kind in KINDS},
    "BOOL": "tinyint", "BOOLEAN": "tinyint", "INT1": "tinyint", "INT2": "smallint",
    "INT3": "mediumint", "MIDDLEINT": "mediumint", "INTEGER": "int", "INT4": "int", "INT8": "bigint",
    "DEC": "decimal", "NUMERIC": "decimal", "FIXED": "decimal", "FLOAT4": "float", "FLOAT8": "double",
    "REAL": "double", "CHARACTER": "char", "VARCHARACTER": "varchar", "NCHAR": "char",
    "NVARCHAR": "varchar", "TINYTEXT": "text", "MEDIUMTEXT": "text", "LONGTEXT": "text",
    "SERIAL": "bigint",
    "LONG": "text", "TINYBLOB": "blob", "MEDIUMBLOB": "blob", "LONGBLOB": "blob",
    "POINT": "geometry", "LINESTRING": "geometry", "POLYGON": "geometry", "MULTIPOINT": "geometry",
    "MULTILINESTRING": "geometry", "MULTIPOLYGON": "geometry", "GEOMETRYCOLLECTION": "geometry",
    "GEOMCOLLECTION": "geometry",
}  # fmt: skip
_SUBTYPES: Final = {"GEOMCOLLECTION": "geometrycollection"}
_LENGTH_BYTES: Final = {"TINY": 1, "LONG": 4, "MEDI": 3, "TEXT": 2, "BLOB": 2}
"""Bytes of the length, by the first letters of a text's or blob's type."""

_VECTOR_DIMENSIONS: Final = 2048
"""Dimensions of a VECTOR whose definition doesn't say them."""


def read_type(tokens: Tokens) -> dict[str, Any]:
    """Read a type; return the fields of its Column, and sizes that depend on the character set.

    Raises NotUnderstood for an unknown type.
    """
    national = tokens.accept("NATIONAL")
    token = tokens.take()
    kind = _TYPES.get(token.value) if token.kind == "word" else None
    if kind is None:
        raise NotUnderstood(f"type {token.text}")
    details: dict[str, object] = {"kind": kind}
    if national or token.value in ("NCHAR", "NVARCHAR"):
        details["charset"] = "utf8mb3"
    match token.value:
        case "LONG":  # LONG VARCHAR and LONG VARBINARY are MEDIUMTEXT and MEDIUMBLOB
            if tokens.accept("VARBINARY"):
                details["kind"] = "blob"
            elif tokens.accept_any("CHAR", "CHARACTER"):
                tokens.expect("VARYING")
            else:
                tokens.accept_any("VARCHAR", "VARCHARACTER")
            details["length"] = 3
            return details
        case "CHAR" | "CHARACTER" | "NCHAR" if tokens.accept("VARYING"):
            details["kind"] = "varchar"
        case "NCHAR" if tokens.accept_any("VARCHAR", "VARCHARACTER"):
            details["kind"] = "varchar"
        case "DOUBLE":
            tokens.accept("PRECISION")
        case "BOOL" | "BOOLEAN":
            details["width"] = 1
        case "SERIAL":
            details |= {"unsigned": True, "nullable": False, "auto_increment": True, "unique": True}
        case "REAL" if tokens.sql_mode & REAL_AS_FLOAT:
            details["kind"] = "float"
    _read_size(tokens, token.value, details)
    return details


def _read_size(tokens: Tokens, word: str, details: dict[str, Any]) -> None:
    """Read the parentheses after a type, or apply the type's default size."""
    kind = details["kind"]
    if kind == "geometry" and word != "GEOMETRY":
        details["subtype"] = _SUBTYPES.get(word, word.lower())
    if kind in WITH_MEMBERS:
        tokens.expect("(")
        members = [tokens.string()]
        while tokens.accept(","):
            members.append(tokens.string())
        tokens.expect(")")
        details["members"] = tuple(member.rstrip(" ") for member in members)
        return
    numbers = []
    if tokens.accept("("):
        numbers.append(tokens.number())
        if tokens.accept(","):
            numbers.append(tokens.number())
        tokens.expect(")")
    first = numbers[0] if numbers else 0
    match kind:
        case "decimal":
            details["length"], details["scale"] = first or 10, numbers[1] if len(numbers) > 1 else 0
        case "float" if len(numbers) == 1 and first > 24:
            details["kind"] = "double"
        case "float" | "double" if len(numbers) == 2:
            details["length"], details["scale"] = numbers
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" if first:
            details["width"] = first
        case "char" | "binary" | "bit":
            details["length"] = first if numbers else 1
        case "varchar" | "varbinary":
            details["length"] = first
        case "vector":
            details["length"] = first if numbers else _VECTOR_DIMENSIONS
        case "time" | "datetime" | "timestamp":
            details["scale"] = first
        case "text" | "blob":
            details["length"] = bytes_of_length(first) or _LENGTH_BYTES[word[:4]]
            if kind == "text":
                details["characters"] = first
        case "year" if first == 2:
            raise NotUnderstood("YEAR(2)")
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "float" | "double" | "date" | "year"
            | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6" | "geometry"
        ):  # fmt: skip
            pass
        case _:
            assert_never(kind)


def bytes_of_length(most_bytes: int) -> int:
    """Return the number of bytes of a text's length prefix."""
    return (most_bytes.bit_length() + 7) // 8


def shown_width(details: Mapping[str, Any], *, of_mysql: bool) -> int:
    """Return the `Column.width` of an integer's details.

    MySQL shows the width of TINYINT(1), and those of types with ZEROFILL.
    """
    kind, width, unsigned = details["kind"], details["width"], details.get("unsigned", False)
    if of_mysql and not details.get("zerofill") and (kind, width, unsigned) != ("tinyint", 1, False):
        return 0
    return display_width(kind, width, unsigned=unsigned)
