"""Columns in Debezium's Avro: their schemas, and writers of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

from ...events import (
    BYTE_STRINGS,
    Column,
    Table,
)
from .avro_columns import unsigned
from .avro_values import AvroWriter, binaries, bits, doubles, longs, nullable, singles, texts, unscaled
from .columns import Parts, Values
from .debezium_schemas import legal
from .debezium_types import connect_type, conversion
from .definition import Definition, bare_type, has_digits
from .encoder import NotEncodable, refuse
from .options import DebeziumAvroOptions, DebeziumOptions

_AVRO: Final = {
    "int32": "int", "int64": "long", "float": "float", "double": "double", "string": "string",
    "bytes": "bytes", "boolean": "boolean",
}  # fmt: skip
"""Avro's types, by Kafka Connect's."""


def avro_field(
    encoding: str, definition: Definition, column: Column, options: DebeziumAvroOptions
) -> dict[str, object]:
    """Return the declaration of a column in a record. Raises NotEncodable for a kind that has none."""
    if column.kind == "geometry":
        refuse(encoding, definition.table, column.name, "it has no form for a geometry")
    avro: dict[str, object] = {
        "connect.field": column.name,
        "default": None,
        "name": legal(column.name),
        "type": ["null", _type(definition.table, column, options)],
    }
    if options.enable_tidb_extension:
        full = bare_type(column).removesuffix(" zerofill")
        avro["tidb_type"] = column.kind if column.kind == "decimal" else full
    return avro


def _type(table: Table, column: Column, options: DebeziumAvroOptions) -> object:
    if column.kind in BYTE_STRINGS:
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
    type_fields: dict[str, object] = {"type": _AVRO[kind], "connect.name": name}
    if column.kind != "vector":
        type_fields["connect.version"] = 1
    if parameters:
        type_fields["connect.parameters"] = parameters
    return type_fields


def _as_json(options: DebeziumAvroOptions) -> DebeziumOptions:
    """Return the options of the JSON form that has the same types."""
    return DebeziumOptions(
        decimal_handling_mode="string",
        bigint_unsigned_handling_mode=options.avro_bigint_unsigned_handling_mode,
        refuse_inexact=options.refuse_inexact,
    )


def field_writer(encoding: str, table: Table, column: Column, options: DebeziumAvroOptions) -> AvroWriter:
    """Return the writer of a field, which may be null."""

    def with_null(write: AvroWriter) -> AvroWriter:
        return nullable(write, b"\0", b"\2")

    match column.kind:
        case "float":
            return with_null(doubles if has_digits(column) else singles)
        case "double":
            return with_null(doubles)
        case "bit" if column.length == 1:
            return with_null(lambda values: [[b"\1" if value else b"\0" for value in values]])
        case "bit":
            return with_null(bits(column.length, "little"))
        case "binary" | "varbinary" | "blob":
            return with_null(binaries)
        case "decimal" if options.avro_decimal_handling_mode == "precise":
            return with_null(unscaled(column.scale))
        case "bigint" if column.unsigned and options.avro_bigint_unsigned_handling_mode == "long":
            return with_null(unsigned(encoding, table, column, wrap=False))
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "char" | "varchar"
            | "text" | "date" | "time" | "datetime" | "timestamp" | "year" | "enum" | "set" | "json"
            | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            pass
        case _:
            assert_never(column.kind)
    convert = conversion(table, column, _as_json(options))
    write = with_null(texts if connect_type(table, column, _as_json(options))[0] == "string" else longs)
    return write if convert is None else _converted(encoding, convert, write)


def _converted(encoding: str, convert: Callable[[Values], Values], write: AvroWriter) -> AvroWriter:
    """Return a writer of converted values: a zero date may be NULL in this form."""

    def parts(values: Values) -> Parts:
        try:
            return write(convert(values))
        except NotEncodable as error:
            raise error.of(encoding) from None

    return parts
