"""Columns in TiCDC's Avro: their schemas, and writers of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, assert_never

from ...events import Column, Kind, Table
from .avro_values import (
    AvroWriter,
    binaries,
    bits,
    doubles,
    longs,
    nullable,
    singles,
    texts,
    unscaled,
    written,
)
from .columns import Parts, Values
from .debezium_schemas import legal
from .encoder import refuse
from .options import AvroOptions
from .sql_default import constant, spelled
from .value_lines import integers, value_lines

_TYPES: Final[dict[Kind, tuple[str, str]]] = {
    "tinyint": ("int", "INT"), "smallint": ("int", "INT"), "mediumint": ("int", "INT"), "int": ("int", "INT"),
    "bigint": ("long", "BIGINT"), "float": ("float", "FLOAT"), "double": ("double", "DOUBLE"),
    "decimal": ("bytes", "DECIMAL"), "bit": ("bytes", "BIT"), "year": ("int", "YEAR"),
    "char": ("string", "TEXT"), "varchar": ("string", "TEXT"), "text": ("string", "TEXT"),
    "binary": ("bytes", "BLOB"), "varbinary": ("bytes", "BLOB"), "blob": ("bytes", "BLOB"),
    "date": ("string", "DATE"), "time": ("string", "TIME"), "datetime": ("string", "DATETIME"),
    "timestamp": ("string", "TIMESTAMP"), "enum": ("string", "ENUM"), "set": ("string", "SET"),
    "json": ("string", "JSON"), "vector": ("string", "TiDBVECTORFloat32"),
    "uuid": ("string", "TEXT"), "inet4": ("string", "TEXT"), "inet6": ("string", "TEXT"),
}  # fmt: skip
"""Avro's type, and the name of TiDB's."""

_TOO_LARGE: Final = 2**63
_NOTHING: Final = object()


class AvroColumn(NamedTuple):
    field: dict[str, Any]
    """Declaration of the field in a record."""
    write: AvroWriter


def avro_column(encoding: str, table: Table, column: Column, options: AvroOptions) -> AvroColumn:
    """Return the form of a column. Raises NotEncodable for a kind that has none."""
    if column.kind == "geometry":
        refuse(encoding, table, column.name, "it has no form for a geometry")
    kind = _type(column, options)
    default = _default(column, options, kind["type"])
    declared: dict[str, object] = {} if default is _NOTHING else {"default": default}
    declared["name"] = legal(column.name)
    write = _writer(encoding, table, column, options)
    if not column.nullable:
        return AvroColumn(declared | {"type": kind}, write)
    if default is _NOTHING:
        field = {"default": None, **declared, "type": ["null", kind]}
        return AvroColumn(field, nullable(write, b"\0", b"\2"))
    return AvroColumn(declared | {"type": [kind, "null"]}, nullable(write, b"\2", b"\0"))


def _type(column: Column, options: AvroOptions) -> dict[str, Any]:
    kind, name = _TYPES[column.kind]
    parameters = {"tidb_type": name}
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" if column.unsigned:
            parameters["tidb_type"] = f"{name} UNSIGNED"
            if column.kind == "int":
                kind = "long"
            elif column.kind == "bigint" and options.avro_bigint_unsigned_handling_mode == "string":
                kind = "string"
        case "decimal" if options.avro_decimal_handling_mode == "string":
            kind = "string"
        case "decimal":
            return {
                "type": kind,
                "connect.parameters": parameters,
                "logicalType": "decimal",
                "precision": column.length,
                "scale": column.scale,
            }
        case "bit":
            parameters = {"length": str(column.length), **parameters}
        case "enum" | "set":
            parameters = {"allowed": ",".join(column.members), **parameters}
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "float" | "double" | "char"
            | "varchar" | "text" | "binary" | "varbinary" | "blob" | "date" | "time" | "datetime"
            | "timestamp" | "year" | "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            pass
        case _:
            assert_never(column.kind)
    return {"type": kind, "connect.parameters": parameters}


def _default(column: Column, options: AvroOptions, kind: str) -> object:
    """Return the default as JSON has it, or _NOTHING."""
    constant_value = constant(column)
    if constant_value is None:
        text = column.default or ""
        if column.kind == "time" and text.startswith("'"):
            return spelled(column)
        return text if text.upper().startswith("CURRENT_TIMESTAMP") and kind == "string" else _NOTHING
    match column.kind:
        case "decimal":
            return str(constant_value) if kind == "string" else _NOTHING
        case "bit":
            return constant_value.to_bytes((column.length + 7) // 8).decode("latin-1")
        case "binary" | "varbinary" | "blob":
            return (constant_value if isinstance(constant_value, bytes) else constant_value.encode()).decode(
                "latin-1"
            )
        case "bigint" if kind == "string":
            return str(constant_value)
        case "bigint" if column.unsigned and constant_value >= _TOO_LARGE:
            return _NOTHING if options.refuse_inexact else constant_value - 2 * _TOO_LARGE
        case "date" | "datetime" | "timestamp":
            return spelled(column)
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "float" | "double" | "char"
            | "varchar" | "text" | "time" | "year" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6"
            | "geometry" | "vector"
        ):  # fmt: skip
            return constant_value
        case _:
            assert_never(column.kind)


def _writer(encoding: str, table: Table, column: Column, options: AvroOptions) -> AvroWriter:
    """Return the writer of values that aren't NULL."""
    match column.kind:
        case "bigint" if column.unsigned and options.avro_bigint_unsigned_handling_mode == "string":
            return written(integers)
        case "bigint" if column.unsigned:
            return unsigned(encoding, table, column, wrap=not options.refuse_inexact)
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year":
            return longs
        case "float":
            return singles
        case "double":
            return doubles
        case "decimal" if options.avro_decimal_handling_mode == "precise":
            return unscaled(column.scale)
        case "bit":
            return bits(column.length, "big")
        case "binary" | "varbinary" | "blob":
            return binaries
        case "enum":
            members = frozenset(column.members)
            invalid = _invalid_member(encoding, table, column, options)
            return lambda values: texts([value if value in members else invalid() for value in values])
        case "set":
            return texts
        case (
            "decimal" | "char" | "varchar" | "text" | "date" | "time" | "datetime" | "timestamp" | "json"
            | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            pass
        case _:
            assert_never(column.kind)
    lines = value_lines(encoding, table, column, options.zone)
    return texts if lines is None else written(lines)


def _invalid_member(encoding: str, table: Table, column: Column, options: AvroOptions) -> Callable[[], str]:
    """Return a function for invalid values of an enum, which are empty texts unless a member is one."""

    def invalid() -> str:
        if "" in column.members and options.refuse_inexact:
            reason = "an invalid value would read as the member ''; or set refuse-inexact = false"
            refuse(encoding, table, column.name, reason)
        return ""

    return invalid


def unsigned(encoding: str, table: Table, column: Column, wrap: bool) -> AvroWriter:
    """Return a writer of unsigned integers as longs.

    Values from 2^63 on are refused, or become negative if `wrap`.
    """

    def negative(value: int) -> int:
        if not wrap:
            reason = 'a value from 2^63 on is no long: set avro-bigint-unsigned-handling-mode = "string"'
            refuse(encoding, table, column.name, reason)
        return value - 2 * _TOO_LARGE

    def write(values: Values) -> Parts:
        if max(values) < _TOO_LARGE:
            return longs(values)
        return longs([value if value < _TOO_LARGE else negative(value) for value in values])

    return write


def check_names(encoding: str, table: Table) -> None:
    """Raise NotEncodable if two columns get the same name in Avro."""
    seen: dict[str, str] = {}
    for column in table.columns:
        other = seen.setdefault(legal(column.name), column.name)
        if other != column.name:
            name = legal(column.name)
            refuse(encoding, table, column.name, f"Avro's name for it is {name}, as for column {other}")
