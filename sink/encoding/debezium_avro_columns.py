"""Columns in Debezium's Avro: their schemas, and Python expressions for their bytes."""

from __future__ import annotations

from typing import Any, Final

from ...events import Column, Table
from .avro_code import SCOPE, bytes_code, long_code, text_code
from .avro_columns import signed, unsigned_expression
from .debezium_schemas import legal
from .debezium_types import connect_type, conversion
from .definition import Definition, bare_type
from .encoder import NotEncodable, refuse
from .options import DebeziumAvroOptions, DebeziumOptions
from .value_text import Scope

_AVRO: Final = {
    "int32": "int", "int64": "long", "float": "float", "double": "double", "string": "string",
    "bytes": "bytes", "boolean": "boolean",
}  # fmt: skip
"""Avro's types, by Kafka Connect's."""
_BINARY: Final = ("binary", "varbinary", "blob")


def avro_field(
    encoding: str, definition: Definition, column: Column, options: DebeziumAvroOptions
) -> dict[str, Any]:
    """Return the declaration of a column in a record. Raises NotEncodable for a kind that has none."""
    if column.kind == "geometry":
        refuse(encoding, definition.table, column.name, "it has no form for a geometry")
    found: dict[str, Any] = {
        "connect.field": column.name,
        "default": None,
        "name": legal(column.name),
        "type": ["null", _type(definition.table, column, options)],
    }
    if options.enable_tidb_extension:
        full = bare_type(definition, column).removesuffix(" zerofill")
        found["tidb_type"] = column.kind if column.kind == "decimal" else full
    return found


def _type(table: Table, column: Column, options: DebeziumAvroOptions) -> Any:
    if column.kind in _BINARY:
        return "bytes"
    if column.kind == "decimal" and options.avro_decimal_handling_mode == "precise":
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": column.length,
            "scale": column.scale,
            "connect.name": "org.apache.kafka.connect.data.Decimal",
            "connect.parameters": {"precision": str(column.length), "scale": str(column.scale)},
        }
    kind, name, parameters = connect_type(table, column, _as_json(options))
    if kind == "int16":
        return {"type": "int", "connect.type": kind}
    if not name:
        return _AVRO[kind]
    found: dict[str, Any] = {"type": _AVRO[kind], "connect.name": name}
    if column.kind != "vector":
        found["connect.version"] = 1
    if parameters:
        found["connect.parameters"] = parameters
    return found


def _as_json(options: DebeziumAvroOptions) -> DebeziumOptions:
    """Return the options of the JSON form that has the same types."""
    return DebeziumOptions(
        decimal_handling_mode="string",
        bigint_unsigned_handling_mode=options.avro_bigint_unsigned_handling_mode,
        refuse_inexact=options.refuse_inexact,
    )


def field_expression(
    encoding: str, table: Table, place: int, options: DebeziumAvroOptions, scope: Scope
) -> str:
    """Return a Python expression for the bytes of a field, which may be null."""
    column, var = table.columns[place], f"c{place}"
    scope |= SCOPE
    match column.kind:
        case "float" | "double":
            value = f"{column.kind}_bytes({var})"
        case "bit" if column.length == 1:
            value = f"(b'\\1' if {var} else b'\\0')"
        case "bit":
            value = bytes_code(f"{var}.to_bytes({(column.length + 7) // 8}, 'little')")
        case "binary" | "varbinary" | "blob":
            value = bytes_code(var)
        case "decimal" if options.avro_decimal_handling_mode == "precise":
            value = bytes_code(f"unscaled_bytes({var}, {column.scale})")
        case "bigint" if column.unsigned and options.avro_bigint_unsigned_handling_mode == "long":
            negative = scope.keep(signed(encoding, table, column, wrap=False))
            value = unsigned_expression(var, negative)
        case _:
            return _converted(encoding, table, column, var, options, scope)
    return f"(b'\\0' if {var} is None else b'\\2' + {value})"


def _converted(
    encoding: str, table: Table, column: Column, var: str, options: DebeziumAvroOptions, scope: Scope
) -> str:
    kind = connect_type(table, column, _as_json(options))[0]
    write = text_code if kind == "string" else long_code
    convert = conversion(table, column, _as_json(options))
    if convert is None:
        return f"(b'\\0' if {var} is None else b'\\2' + {write(var)})"

    def converted(value: Any) -> Any:
        try:
            return convert(value)
        except NotEncodable as error:
            raise error.of(encoding) from None

    name = scope.keep(converted)
    # a zero date may be NULL in this form
    return f"(b'\\0' if {var} is None or (v := {name}({var})) is None else b'\\2' + {write('v')})"
